#include "sinter/pack_file.h"

#include <cstring>
#include <memory>

#include "application/runner_state.h"
#include "sinter/new_file.h"

namespace sinter {
namespace {

Status put(void* file, std::span<const std::byte> bytes) { return static_cast<NewFile*>(file)->write(bytes); }

struct Paths {
  const char* from;
  const char* to;
  const char* at;  // the path that an error is about
};

// Returns an error unless sessions of all shape sets can be created from the file, which may lack constants.
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
  const std::unique_ptr<NewFile> file(new (std::nothrow) NewFile);
  SINTER_RETURN_UNLESS(file != nullptr, detail::kNoMemory);
  paths->at = paths->to;
  SINTER_RETURN_IF_ERROR(file->create(paths->to));
  SINTER_RETURN_IF_ERROR(packed_only ? only.write(put, file.get())
                                     : model->packed.write_file(put, file.get()));
  SINTER_RETURN_IF_ERROR(file->finish());
  detail::SharedModel written;
  RunnerOptions sound = options;
  sound.check_digests = true;
  SINTER_RETURN_IF_ERROR(written.open(file->path(), sound));
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
  return file->publish();
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
