// The functions of the system for FileMap on POSIX (posix.cc): mapped.cc, or heap.cc where files cannot be
// mapped.
#pragma once

#include "sinter/file_map.h"

namespace sinter::detail {

// Loads the `size` bytes (not 0) of the file that `fd` refers to. `bytes` is for unload(), also after a
// failure.
Status load(int fd, size_t size, FileMap::Mode mode, std::span<const std::byte>* bytes);
void unload(std::span<const std::byte> bytes);

// Reads exactly `size` bytes.
Status read_all(int fd, std::byte* to, size_t size);
Status no_memory_for_copy(size_t size);

}  // namespace sinter::detail
