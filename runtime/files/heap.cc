// For systems that cannot map a file (WebAssembly): both modes read the file into memory.
#include <cstdlib>

#include "runtime/core/bump_arena.h"
#include "runtime/core/tensor_view.h"
#include "runtime/files/posix.h"

namespace sinter::detail {

Status load(int fd, size_t size, FileMap::Mode, std::span<const std::byte>* bytes) {
  void* memory = std::aligned_alloc(kBufferAlignment, align_up(size, kBufferAlignment));
  SINTER_RETURN_UNLESS(memory != nullptr, no_memory_for_copy(size));
  *bytes = {static_cast<const std::byte*>(memory), size};
  return read_all(fd, static_cast<std::byte*>(memory), size);
}

void unload(std::span<const std::byte> bytes) { std::free(const_cast<std::byte*>(bytes.data())); }

}  // namespace sinter::detail
