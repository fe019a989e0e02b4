#include "converter/files/pending_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

namespace fs = std::filesystem;

FileError cannot_be_written(const fs::path& path, int fault) {
  return FileError(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(fault)));
}

// Returns the descriptor of this process for a name such as /dev/stdout; -1 if there is none.
int descriptor_of(fs::path path) {
  constexpr int kMostLinks = 40;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path folder = path.parent_path();
    if (folder == "/proc/self/fd" || folder == "/dev/fd") {
      const std::string name = path.filename().string();
      int fd = -1;
      const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), fd);
      return fault == std::errc() && end == name.data() + name.size() ? fd : -1;
    }
    std::error_code none;
    const fs::path to = fs::read_symlink(path, none);
    if (none) return -1;
    path = folder / to;
  }
  return -1;
}

void write_to(int fd, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw cannot_be_written(path, n < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

void write_special(const fs::path& path, std::span<const std::byte> bytes) {
  // O_NONBLOCK: opening a pipe must not wait for a reader, which may never come.
  const Descriptor to{::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (to.fd < 0 && errno == ENXIO)
    throw FileError(fmt::format("{}: nothing reads this pipe; start its reader first", path.string()));
  if (to.fd < 0 || ::fcntl(to.fd, F_SETFL, ::fcntl(to.fd, F_GETFL) & ~O_NONBLOCK) != 0)
    throw cannot_be_written(path, errno);
  write_to(to.fd, bytes, path);
}

}  // namespace

bool is_stream(const fs::path& path) {
  std::error_code unknown;
  return descriptor_of(path) >= 0 || (fs::exists(path, unknown) && !fs::is_regular_file(path, unknown));
}

void check_place(const fs::path& out) {
  const fs::path folder = out.has_parent_path() ? out.parent_path() : ".";
  if (!fs::is_directory(folder))
    throw FileError(
        fmt::format("{}: the folder does not exist; create it, or write elsewhere", folder.string()));
  if (fs::is_directory(out))
    throw FileError(fmt::format("{}: is a folder; give the name of a file", out.string()));
}

void check_output(const fs::path& out) {
  check_place(out);
  if (is_stream(out))
    throw FileError(
        fmt::format("{}: is not a regular file and would be replaced by one; write elsewhere", out.string()));
}

PendingFile::PendingFile(fs::path path)
    : path_(std::move(path)), file_(std::make_unique<NewFile>()), on_signals_(file_->path()) {
  check(file_->create(path_.c_str()));
}

void PendingFile::check(const Status& status) const {
  if (status.ok()) return;
  if (status.a != 0) throw cannot_be_written(path_, static_cast<int>(status.a));
  throw FileError(fmt::format("{}: {}", path_.string(), status.message));
}

void PendingFile::write(const void* data, size_t bytes) {
  check(file_->write({static_cast<const std::byte*>(data), bytes}));
  at_ += bytes;
}

void PendingFile::pad_to(uint64_t offset) {
  static constexpr std::array<char, 64> kZeros{};
  while (at_ < offset) write(kZeros.data(), std::min<uint64_t>(kZeros.size(), offset - at_));
}

void PendingFile::rewrite_start(const void* data, size_t bytes) {
  check(file_->rewind());
  write(data, bytes);
}

void PendingFile::publish(const std::function<void(const fs::path&)>& check_written, NewFile::Kept kept) {
  check(file_->finish(kept));
  if (check_written) check_written(file_->path());
  check(file_->publish());
}

void write_whole(const fs::path& path, std::span<const std::byte> bytes) {
  if (const int fd = descriptor_of(path); fd >= 0) {
    std::fflush(nullptr);  // text that was printed before comes first
    write_to(fd, bytes, path);
  } else if (is_stream(path)) {
    write_special(path, bytes);
  } else {
    PendingFile file(path);
    file.write(bytes.data(), bytes.size());
    file.publish();
  }
}
void write_whole(const fs::path& path, std::string_view text) {
  write_whole(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace sinter::convert
