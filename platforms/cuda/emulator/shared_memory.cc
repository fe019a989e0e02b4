#include "platforms/cuda/emulator/shared_memory.h"

#include <algorithm>

namespace sinter::cuda::emulator {

void SharedMemory::begin(size_t bytes) { bytes_ = std::min(bytes, kMost); }

const char* SharedMemory::check(int at, size_t bytes, size_t alignment) const {
  if (at < 0 || static_cast<size_t>(at) + bytes > bytes_) return "is accessed beyond what the launch has";
  if (static_cast<size_t>(at) % alignment != 0) return "is accessed at an address that is not aligned";
  return nullptr;
}

std::byte* SharedMemory::read(int at, size_t bytes, size_t alignment, const char** fault) {
  *fault = check(at, bytes, alignment);
  for (size_t i = 0; i < bytes && *fault == nullptr; ++i) {
    Uses& uses = uses_[static_cast<size_t>(at) + i];
    *fault = order.used_in_block(uses.written) ? order.read(uses) : "is read before it is written";
  }
  return *fault == nullptr ? data_.data() + at : nullptr;
}

std::byte* SharedMemory::write(int at, size_t bytes, size_t alignment, const char** fault) {
  *fault = check(at, bytes, alignment);
  for (size_t i = 0; i < bytes && *fault == nullptr; ++i) {
    // Other blocks have shared memory of their own.
    Uses& uses = uses_[static_cast<size_t>(at) + i];
    if (!order.used_in_block(uses.written)) uses = {};
    *fault = order.write(uses);
  }
  return *fault == nullptr ? data_.data() + at : nullptr;
}

}  // namespace sinter::cuda::emulator
