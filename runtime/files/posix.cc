#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "sinter/file_map.h"

namespace sinter {
namespace {

// Reads exactly `bytes`; false if there are fewer.
bool read_all(int fd, std::byte* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = read(fd, to, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  const auto mine = bytes_;
  bytes_ = other.bytes_;
  other.bytes_ = mine;
  return *this;
}

FileMap::~FileMap() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<FileMap> FileMap::open(const char* path, Mode mode) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  SINTER_RETURN_UNLESS(fd >= 0, invalid("the file cannot be opened (error %a)", errno));
  FileMap map;
  struct stat info {};
  Status status;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = invalid("this is not a file");
  } else if (info.st_size > 0) {
    if (static_cast<uint64_t>(info.st_size) > SIZE_MAX / 2) {
      status = unsupported("the file is too large for this machine");
    } else {
      const auto size = static_cast<size_t>(info.st_size);
      const bool copies = mode == Mode::kCopied;
      void* p = copies ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                       : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (p == MAP_FAILED) {
        status = copies ? error(Code::kOutOfMemory,
                                "%a bytes of memory for a copy of the file cannot be allocated",
                                static_cast<int64_t>(size))
                        : invalid("the file cannot be mapped (error %a)", errno);
      } else {
        map.bytes_ = {static_cast<const std::byte*>(p), size};
        if (copies && !read_all(fd, static_cast<std::byte*>(p), size))
          status = invalid("the file cannot be read, or was truncated (error %a)", errno);
      }
    }
  }
  close(fd);
  if (!status.ok()) return status;
  return map;
}

}  // namespace sinter
