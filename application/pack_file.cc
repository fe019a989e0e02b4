#include "sinter/pack_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "application/runner_state.h"

namespace sinter {
namespace {

Status cannot_write() { return invalid("the file cannot be written (error %a)", errno); }

// A file under a name of its own until it is whole.
class NewFile {
 public:
  explicit NewFile(const char* to)
      : to_(to), path_(new (std::nothrow) char[std::strlen(to) + sizeof(kSuffix)]) {
    if (path_ == nullptr) return;
    std::strcpy(path_.get(), to);
    std::strcat(path_.get(), kSuffix);
    file_ = std::fopen(path_.get(), "wb");
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (file_ != nullptr) std::fclose(file_);
    if (path_ != nullptr && !kept_) std::remove(path_.get());
  }
  const char* path() const { return path_.get(); }
  bool opened() const { return file_ != nullptr; }

  static Status put(void* self, std::span<const std::byte> bytes) {
    std::FILE* file = static_cast<NewFile*>(self)->file_;
    const bool done = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    return done ? ok_status() : cannot_write();
  }
  Status close() {
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    return closed ? ok_status() : cannot_write();
  }
  Status publish() {
#ifdef _WIN32
    std::remove(to_);  // rename() does not replace a file there
#endif
    kept_ = std::rename(path_.get(), to_) == 0;
    return kept_ ? ok_status() : cannot_write();
  }

 private:
  static constexpr char kSuffix[] = ".partial";
  const char* to_;
  std::unique_ptr<char[]> path_;
  std::FILE* file_ = nullptr;
  bool kept_ = false;
};

struct Paths {
  const char* from;
  const char* to;
  const char* at;  // the one that an error is about
};

// Whether sessions of all shape sets are created from the file, where constants may be missing.
Status check_sessions(const detail::SharedModel& model, SessionOptions with) {
  with.packed_weights = &model.packed;
  with.packed_in_file = packed_in_file();
  for (with.entry = 0; with.entry < model.model.entry_count(); ++with.entry)
    SINTER_RETURN_IF_ERROR(Session::requirements(model.model, with).status());
  return ok_status();
}

Status pack_into(Paths* paths, const RunnerOptions& options, bool packed_only, detail::SharedModel* model,
                 PackReport* report) {
  SINTER_RETURN_IF_ERROR(model->open(paths->from, options));
  SessionOptions with;
  std::unique_ptr<PthreadPool> pool;
  SINTER_RETURN_IF_ERROR(detail::session_options(options, &pool, &with));
  if (packed_only) with.entry = kEveryEntry;
  SINTER_RETURN_IF_ERROR(model->pack(with));
  PackedOnlyFile only;
  detail::Memory memory;
  if (packed_only) {
    SINTER_RETURN_IF_ERROR(memory.allocate(PackedOnlyFile::bytes(model->model)));
    const auto made = PackedOnlyFile::create(model->model, model->packed, with, memory.span());
    SINTER_RETURN_IF_ERROR(made.status());
    only = *made;
  }
  report->added = model->packed.missing();
  report->count = model->packed.stored() + report->added;
  report->left_out = only.count();
  report->file_bytes = model->map.bytes().size();
  if (report->added + report->left_out == 0 && std::strcmp(paths->from, paths->to) == 0) return ok_status();
  NewFile file(paths->to);
  SINTER_RETURN_UNLESS(file.path() != nullptr, detail::kNoMemory);
  paths->at = paths->to;
  SINTER_RETURN_UNLESS(file.opened(), cannot_write());
  SINTER_RETURN_IF_ERROR(packed_only ? only.write(NewFile::put, &file)
                                     : model->packed.write_file(NewFile::put, &file));
  SINTER_RETURN_IF_ERROR(file.close());
  detail::SharedModel written;
  RunnerOptions sound = options;
  sound.check_digests = true;
  SINTER_RETURN_IF_ERROR(written.open(file.path(), sound));
  SINTER_RETURN_IF_ERROR(written.pack(with));
  SINTER_RETURN_UNLESS(written.packed.stored() == report->count,
                       error(Code::kInternal, "%a of %b packings are found in the written file",
                             written.packed.stored(), report->count));
  if (packed_only) SINTER_RETURN_IF_ERROR(check_sessions(written, with));
  report->bytes = static_cast<int64_t>(written.map.bytes().size() - report->file_bytes);
  report->file_bytes = written.map.bytes().size();
  // Windows does not replace a file that is mapped.
  written.map = FileMap();
  model->map = FileMap();
  return file.publish();
}

}  // namespace

PackReport pack_file(const char* from, const char* to, const RunnerOptions& options, bool packed_only) {
  PackReport report;
  detail::SharedModel model;
  Paths paths{from, to, from};
  const Status status = from != nullptr && to != nullptr
                            ? pack_into(&paths, options, packed_only, &model, &report)
                            : invalid("a path is missing");
  if (status.ok()) return report;
  report = {};
  report.code = status.code;
  Text text{report.text};
  if (paths.at != nullptr) text.put("%s: ", paths.at);
  model.model.format(status, text.rest());
  return report;
}

}  // namespace sinter
