// Files are mapped. Copies are pages that the system gives.
#include <sys/mman.h>

#include <cerrno>

#include "runtime/files/posix.h"

namespace sinter::detail {

Status load(int fd, size_t size, FileMap::Mode mode, std::span<const std::byte>* bytes) {
  const bool copies = mode == FileMap::Mode::kCopied;
  void* p = copies ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                   : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED)
    return copies ? no_memory_for_copy(size) : invalid("the file cannot be mapped (error %a)", errno);
  *bytes = {static_cast<const std::byte*>(p), size};
  return copies ? read_all(fd, static_cast<std::byte*>(p), size) : ok_status();
}

void unload(std::span<const std::byte> bytes) { munmap(const_cast<std::byte*>(bytes.data()), bytes.size()); }

}  // namespace sinter::detail
