// Device memory: a range of addresses that only kernels and transfers can access, and the marks and uses of
// each of its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platforms/cuda/emulator/uses.h"

namespace sinter::cuda::emulator {

// 1 if kernels report their accesses (global_accesses.cc). Otherwise their writes are not known.
#ifdef SINTER_CUDA_REPORTS_ACCESSES
inline constexpr bool kReportsAccesses = true;
#else
inline constexpr bool kReportsAccesses = false;
#endif

// The state of a byte.
using Mark = uint8_t;
inline constexpr Mark kAllocated = 1, kWritten = 2, kFenced = 4;  // fenced: kernels must not access it

// The range, and for each of its bytes a mark and its uses in the last launch.
struct DeviceRange {
  std::byte* begin = nullptr;
  size_t bytes = 0;
  Mark* marks = nullptr;
  ByteUses uses;
};
extern DeviceRange device_range;

// Returns null if no gap is large enough. The block ends at a page that nobody can access, except for the
// driver's alignment.
std::byte* allocate_device(size_t bytes);
// Returns the block's bytes; 0: there is none at this address.
size_t free_device(std::byte* block);
// Returns whether all of these bytes are of one block.
bool is_on_device(const void* at, size_t bytes);
// Gives the host access to all blocks while a stream's jobs are done, those of other threads included.
void open_device_memory(bool open);

// ---- marks

void note_written(const void* at, size_t bytes);
// The bytes get the marks of their sources.
void note_copied(const void* to, const void* from, size_t bytes);
bool is_written(const void* at, size_t bytes);
void fence_off(const void* at, size_t bytes, bool on);

// ---- accesses of kernels. The functions return null, or the way in which the access breaks the rules.

inline const char* read_device(const void* at, size_t bytes);
inline const char* write_device(const void* at, size_t bytes);
inline const char* change_device_atomically(const void* at, size_t bytes);
// Finds, for messages, the byte within its block, and the block's bytes.
bool find_on_device(const void* at, size_t* byte, size_t* bytes);
// Forgets the uses of a launch if they would take much memory.
void end_launch_on_device();

inline bool in_device_range(const void* at) {
  return reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(device_range.begin) <
         device_range.bytes;
}
inline size_t device_offset(const void* at) {
  return static_cast<size_t>(static_cast<const std::byte*>(at) - device_range.begin);
}

// Returns the fault of an access that these marks do not all allow, or null.
const char* fault_of_marks(const Mark* marks, size_t count, bool reads);

// Returns whether the marks of sizeof(Marks) bytes allow an access. A write is noted there.
template <bool kReads, class Marks>
inline bool mark(Mark* at) {
  constexpr Marks kEach = static_cast<Marks>(0x01010101), kNeeded = kEach * (kAllocated | kWritten);
  Marks marks;
  std::memcpy(&marks, at, sizeof(marks));
  if (!kReads) marks = static_cast<Marks>(marks | kEach * kWritten);
  if (marks != kNeeded) return false;
  if (!kReads) std::memcpy(at, &marks, sizeof(marks));
  return true;
}

// Calls `access` for the entries of all bytes that are in the range, if their marks allow it.
template <bool kReads, class Access>
inline const char* access_device(const void* p, size_t bytes, Access access) {
  const size_t at = device_offset(p), count = std::min(bytes, device_range.bytes - at);
  Mark* marks = device_range.marks + at;
  bool allowed = true;
  size_t i = 0;
  for (; i + sizeof(uint32_t) <= count; i += sizeof(uint32_t)) allowed &= mark<kReads, uint32_t>(marks + i);
  for (; i < count; ++i) allowed &= mark<kReads, Mark>(marks + i);
  if (!allowed) return fault_of_marks(marks, count, kReads);
  return device_range.uses.each(at, at + count, access);
}

inline const char* read_device(const void* at, size_t bytes) {
  if (!kReportsAccesses) return nullptr;
  return access_device<true>(at, bytes, [](Uses& uses) { return order.read(uses); });
}
inline const char* write_device(const void* at, size_t bytes) {
  return access_device<false>(at, bytes, [](Uses& uses) { return order.write(uses); });
}
inline const char* change_device_atomically(const void* at, size_t bytes) {
  if (!kReportsAccesses) return nullptr;
  return access_device<true>(at, bytes, [](Uses& uses) { return order.change_atomically(uses); });
}

}  // namespace sinter::cuda::emulator
