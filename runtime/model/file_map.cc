#include "sinter/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace sinter {

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  const auto mine = bytes_;
  bytes_ = other.bytes_;
  other.bytes_ = mine;
  return *this;
}

FileMap::~FileMap() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<FileMap> FileMap::open(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  SINTER_CHECK(fd >= 0, invalid("the file cannot be opened (error %a)", errno));
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
      void* p = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (p == MAP_FAILED)
        status = invalid("the file cannot be mapped (error %a)", errno);
      else
        map.bytes_ = {static_cast<const std::byte*>(p), size};
    }
  }
  close(fd);
  if (!status.ok()) return status;
  return map;
}

}  // namespace sinter
