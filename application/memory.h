// Memory from the heap, aligned to kBufferAlignment, for the Runner and the C API.
#pragma once

#include <cstddef>
#include <cstdlib>
#ifdef _WIN32
#include <malloc.h>
#endif

#include "sinter/sinter.h"

namespace sinter {

// Returns null if the heap has not that much. It takes at least a byte, so that null always means a failure.
inline std::byte* allocate_aligned(size_t bytes) {
  const size_t whole = align_up(bytes > 0 ? bytes : 1, kBufferAlignment);
  if (whole < bytes) return nullptr;
#ifdef _WIN32
  return static_cast<std::byte*>(_aligned_malloc(whole, kBufferAlignment));
#else
  return static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, whole));
#endif
}

inline void free_aligned(void* block) {
#ifdef _WIN32
  _aligned_free(block);
#else
  std::free(block);
#endif
}

}  // namespace sinter
