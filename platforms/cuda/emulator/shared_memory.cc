#include "platforms/cuda/emulator/shared_memory.h"

#include <algorithm>

namespace sinter::cuda::emulator {
namespace {

constexpr uint16_t kSeveral = UINT16_MAX;

}  // namespace

void SharedMemory::begin(size_t bytes) {
  bytes_ = std::min(bytes, kMost);
  ++block_;
}

// Whether nothing orders this access and that one.
bool SharedMemory::meets(const Use& use, const Accessor& by) {
  if (use.epoch != by.epoch || use.thread == by.thread) return false;
  return use.warp != by.warp || use.warp_epoch == by.warp_epoch;
}

void SharedMemory::note(Use& use, const Accessor& by) {
  const bool same_epoch = use.epoch == by.epoch;
  if (!same_epoch || (use.warp == by.warp && use.warp_epoch != by.warp_epoch))
    use = {by.epoch, by.warp_epoch, by.thread, by.warp};
  else if (use.thread != by.thread)
    use = {by.epoch, by.warp_epoch, kSeveral, use.warp == by.warp ? by.warp : kSeveral};
}

const char* SharedMemory::check(int at, size_t bytes, size_t alignment) const {
  if (at < 0 || static_cast<size_t>(at) + bytes > bytes_)
    return "an access beyond the shared memory of the launch";
  if (static_cast<size_t>(at) % alignment != 0) return "an access to shared memory that is not aligned";
  return nullptr;
}

const char* SharedMemory::read(const Accessor& by, int at, size_t bytes, size_t alignment) {
  if (const char* fault = check(at, bytes, alignment)) return fault;
  for (size_t i = static_cast<size_t>(at); i < static_cast<size_t>(at) + bytes; ++i) {
    Byte& b = uses_[i];
    if (b.block != block_) return "shared memory is read before it is written";
    if (meets(b.written, by)) return "shared memory is read without a barrier behind another thread's write";
    note(b.read, by);
  }
  return nullptr;
}

const char* SharedMemory::write(const Accessor& by, int at, size_t bytes, size_t alignment) {
  if (const char* fault = check(at, bytes, alignment)) return fault;
  for (size_t i = static_cast<size_t>(at); i < static_cast<size_t>(at) + bytes; ++i) {
    Byte& b = uses_[i];
    if (b.block == block_ && meets(b.written, by))
      return "shared memory is written without a barrier behind another thread's write";
    if (b.block == block_ && meets(b.read, by))
      return "shared memory is written without a barrier behind another thread's read";
    b.block = block_;
    b.written = {by.epoch, by.warp_epoch, by.thread, by.warp};
  }
  return nullptr;
}

std::byte* SharedMemory::data(int at, size_t bytes) {
  if (check(at, bytes, 1) != nullptr) return outside_;
  return data_.data() + at;
}

}  // namespace sinter::cuda::emulator
