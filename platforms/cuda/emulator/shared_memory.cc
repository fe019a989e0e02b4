#include "platforms/cuda/emulator/shared_memory.h"

#include <algorithm>

namespace sinter::cuda::emulator {

SharedMemory::SharedMemory()
    : data_(kMost),
      words_(kMost / ByteUses::kWord),
      of_bytes_(kMost),
      split_(kMost / ByteUses::kWord),
      uses_{words_.data(), of_bytes_.data(), split_.data()} {}

void SharedMemory::begin(size_t bytes) { bytes_ = std::min(bytes, kMost); }

const char* SharedMemory::check(int at, size_t bytes, size_t alignment) const {
  if (at < 0 || static_cast<size_t>(at) + bytes > bytes_) return "is accessed beyond what the launch has";
  if (static_cast<size_t>(at) % alignment != 0) return "is accessed at an address that is not aligned";
  return nullptr;
}

std::byte* SharedMemory::read(int at, size_t bytes, size_t alignment, const char** fault) {
  *fault = check(at, bytes, alignment);
  if (*fault != nullptr) return nullptr;
  const auto first = static_cast<size_t>(at);
  *fault = uses_.each(first, first + bytes, [](Uses& uses) {
    return order.used_in_block(uses.written) ? order.read(uses) : "is read before it is written";
  });
  return *fault == nullptr ? data_.data() + at : nullptr;
}

std::byte* SharedMemory::write(int at, size_t bytes, size_t alignment, const char** fault) {
  *fault = check(at, bytes, alignment);
  if (*fault != nullptr) return nullptr;
  const auto first = static_cast<size_t>(at);
  *fault = uses_.each(first, first + bytes, [](Uses& uses) {
    // Other blocks have their own shared memory.
    if (!order.used_in_block(uses.written)) uses = {};
    return order.write(uses);
  });
  return *fault == nullptr ? data_.data() + at : nullptr;
}

}  // namespace sinter::cuda::emulator
