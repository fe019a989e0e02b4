// For systems that cannot map a file (WebAssembly): both modes read it into memory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "runtime/core/bump_arena.h"
#include "runtime/core/tensor_view.h"
#include "sinter/file_map.h"

namespace sinter {
namespace {

Status read_all(int fd, std::byte* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = read(fd, to, bytes);
    if (n < 0 && errno == EINTR) continue;
    SINTER_RETURN_UNLESS(n > 0,
                         invalid("the file cannot be read, or was truncated (error %a)", n < 0 ? errno : 0));
    to += n, bytes -= static_cast<size_t>(n);
  }
  return ok_status();
}

// The bytes that `fd` refers to, on the heap.
Status read_file(int fd, std::span<const std::byte>* bytes) {
  struct stat info {};
  SINTER_RETURN_UNLESS(fstat(fd, &info) == 0 && S_ISREG(info.st_mode), invalid("this is not a file"));
  if (info.st_size == 0) return ok_status();
  SINTER_RETURN_UNLESS(static_cast<uint64_t>(info.st_size) <= SIZE_MAX / 2,
                       unsupported("the file is too large for this machine"));
  const auto size = static_cast<size_t>(info.st_size);
  auto* memory =
      static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, align_up(size, kBufferAlignment)));
  SINTER_RETURN_UNLESS(
      memory != nullptr,
      error(Code::kOutOfMemory, "%a bytes of memory for a copy of the file cannot be allocated",
            static_cast<int64_t>(size)));
  *bytes = {memory, size};  // freed by FileMap, also if reading fails
  return read_all(fd, memory, size);
}

}  // namespace

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  const auto mine = bytes_;
  bytes_ = other.bytes_;
  other.bytes_ = mine;
  return *this;
}

FileMap::~FileMap() { std::free(const_cast<std::byte*>(bytes_.data())); }

Result<FileMap> FileMap::open(const char* path, Mode) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  SINTER_RETURN_UNLESS(fd >= 0, invalid("the file cannot be opened (error %a)", errno));
  FileMap map;
  const Status status = read_file(fd, &map.bytes_);
  close(fd);
  if (!status.ok()) return status;
  return map;
}

}  // namespace sinter
