#include "runtime/files/posix.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace sinter {
namespace {

constexpr Status kNotAFile =
    invalid("this is a folder, a pipe, a socket or a device; give the name of a file");

Status load_file(int fd, FileMap::Mode mode, std::span<const std::byte>* bytes) {
  struct stat info {};
  SINTER_RETURN_UNLESS(fstat(fd, &info) == 0 && S_ISREG(info.st_mode), kNotAFile);
  if (info.st_size == 0) return ok_status();
  SINTER_RETURN_UNLESS(static_cast<uint64_t>(info.st_size) <= SIZE_MAX / 2,
                       unsupported("the file is too large for this machine"));
  return detail::load(fd, static_cast<size_t>(info.st_size), mode, bytes);
}

}  // namespace

Status detail::read_all(int fd, std::byte* to, size_t size) {
  while (size > 0) {
    const ssize_t n = read(fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    SINTER_RETURN_UNLESS(n > 0,
                         invalid("the file cannot be read, or was truncated (error %a)", n < 0 ? errno : 0));
    to += n, size -= static_cast<size_t>(n);
  }
  return ok_status();
}

Status detail::no_memory_for_copy(size_t size) {
  return error(Code::kOutOfMemory, "%a bytes of memory for a copy of the file cannot be allocated",
               static_cast<int64_t>(size));
}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  const auto mine = bytes_;
  bytes_ = other.bytes_;
  other.bytes_ = mine;
  return *this;
}

FileMap::~FileMap() {
  if (!bytes_.empty()) detail::unload(bytes_);
}

Result<FileMap> FileMap::open(const char* path, Mode mode) {
  // The call does not wait for a writer of a pipe.
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  SINTER_RETURN_UNLESS(fd >= 0 || errno != ENXIO, kNotAFile);
  SINTER_RETURN_UNLESS(fd >= 0, invalid("the file cannot be opened (error %a)", errno));
  FileMap map;
  const Status status = load_file(fd, mode, &map.bytes_);
  close(fd);
  if (!status.ok()) return status;
  return map;
}

}  // namespace sinter
