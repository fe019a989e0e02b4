#include "platforms/cuda/emulator/device_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace sinter::cuda::emulator {

DeviceRange device_range;

namespace {

constexpr size_t kRangeBytes = size_t{1} << 33;
constexpr size_t kAlignment = 256;  // the driver guarantees it
// With more memory than this, the uses by launches are forgotten after each.
constexpr size_t kMostKept = size_t{64} << 20;
constexpr size_t kMostLeft = size_t{1} << 20;

struct Block {
  size_t begin = 0, end = 0;  // its pages, in the range
  size_t bytes = 0;
};

struct Blocks {
  std::mutex mutex;
  std::map<std::byte*, Block> all;  // by address
  size_t bytes = 0;
  int working = 0;  // threads that do jobs
};
// The blocks are never destroyed, because sessions may live until the program ends.
Blocks& blocks() {
  static Blocks& made = *new Blocks();
  return made;
}

size_t page() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

void* reserve(size_t bytes, int protection) {
  void* at = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED ? at : nullptr;
}
bool reserve_range() {
  if (device_range.bytes != 0) return true;
  auto* begin = static_cast<std::byte*>(reserve(kRangeBytes, PROT_NONE));
  auto* marks = static_cast<Mark*>(reserve(kRangeBytes, PROT_READ | PROT_WRITE));
  constexpr size_t kWords = kRangeBytes / ByteUses::kWord;
  auto* words = static_cast<Uses*>(reserve(kWords * sizeof(Uses), PROT_READ | PROT_WRITE));
  auto* uses = static_cast<Uses*>(reserve(kRangeBytes * sizeof(Uses), PROT_READ | PROT_WRITE));
  auto* split = static_cast<uint8_t*>(reserve(kWords, PROT_READ | PROT_WRITE));
  if (begin == nullptr || marks == nullptr || words == nullptr || uses == nullptr || split == nullptr)
    return false;
  device_range = {begin, kRangeBytes, marks, {words, uses, split}};
  return true;
}

// libc's functions are not used, because tests count them as calls of a session.
void protect(size_t begin, size_t end, int protection) {
  if (syscall(SYS_mprotect, device_range.begin + begin, end - begin, protection) != 0) std::abort();
}
void protect(const Block& b, int protection) { protect(b.begin, b.end, protection); }
// Takes one call for all blocks if marks report a kernel's accesses between blocks.
void protect_all(const std::map<std::byte*, Block>& all, int protection) {
  if (all.empty()) return;
  if (kReportsAccesses) return protect(all.begin()->second.begin, all.rbegin()->second.end, protection);
  for (const auto& [at, block] : all) protect(block, protection);
}
void discard(void* at, size_t bytes) {
  if (syscall(SYS_madvise, at, bytes, MADV_DONTNEED) != 0) std::abort();
}

// The marks of split words may stay, because the entries of words and of their bytes become 0 together.
void discard_uses(const Block& b) {
  const size_t bytes = b.end - b.begin;
  discard(device_range.uses.words + b.begin / ByteUses::kWord, bytes / ByteUses::kWord * sizeof(Uses));
  discard(device_range.uses.bytes + b.begin, bytes * sizeof(Uses));
}

// Returns the first gap, with a page on both sides, or 0.
size_t find_gap(size_t bytes) {
  size_t at = page();
  for (const auto& [address, block] : blocks().all) {
    if (block.begin >= at + bytes + page()) break;
    at = block.end + page();
  }
  return at + bytes + page() <= kRangeBytes ? at : 0;
}

// Returns the block that contains this byte.
const std::pair<std::byte* const, Block>* block_of(const void* p) {
  auto* at = static_cast<std::byte*>(const_cast<void*>(p));
  auto it = blocks().all.upper_bound(at);
  if (it == blocks().all.begin()) return nullptr;
  --it;
  return static_cast<size_t>(at - it->first) < it->second.bytes ? &*it : nullptr;
}

}  // namespace

std::byte* allocate_device(size_t bytes) {
  Blocks& b = blocks();
  const std::lock_guard<std::mutex> lock(b.mutex);
  if (bytes == 0 || bytes > kRangeBytes || !reserve_range()) return nullptr;
  const size_t inner = (bytes + page() - 1) / page() * page();
  const size_t begin = find_gap(inner);
  if (begin == 0) return nullptr;
  const Block made{begin, begin + inner, bytes};
  protect(made, PROT_READ | PROT_WRITE);
  std::memset(device_range.begin + begin, 0xa5, inner);
  if (b.working == 0) protect(made, PROT_NONE);
  const size_t at = begin + (inner - bytes) / kAlignment * kAlignment;
  std::memset(device_range.marks + at, kAllocated, bytes);
  b.all[device_range.begin + at] = made;
  b.bytes += bytes;
  return device_range.begin + at;
}

size_t free_device(std::byte* block) {
  Blocks& b = blocks();
  const std::lock_guard<std::mutex> lock(b.mutex);
  const auto it = b.all.find(block);
  if (it == b.all.end()) return 0;
  const Block freed = it->second;
  b.all.erase(it);
  b.bytes -= freed.bytes;
  if (b.working > 0) protect(freed, PROT_NONE);
  const size_t bytes = freed.end - freed.begin;
  // Small blocks leave their pages to the next ones: stamps of earlier launches do not matter.
  if (bytes <= kMostLeft) {
    std::memset(device_range.marks + freed.begin, 0, bytes);
    return freed.bytes;
  }
  discard(device_range.begin + freed.begin, bytes);
  discard(device_range.marks + freed.begin, bytes);
  discard_uses(freed);
  return freed.bytes;
}

bool is_on_device(const void* at, size_t bytes) {
  const std::lock_guard<std::mutex> lock(blocks().mutex);
  const auto* block = block_of(at);
  return block != nullptr && bytes <= block->second.bytes &&
         static_cast<size_t>(static_cast<const std::byte*>(at) - block->first) <= block->second.bytes - bytes;
}

void open_device_memory(bool open) {
  Blocks& b = blocks();
  const std::lock_guard<std::mutex> lock(b.mutex);
  b.working += open ? 1 : -1;
  if (!open && b.working > 0) return;
  protect_all(b.all, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// ---- marks

void note_written(const void* at, size_t bytes) {
  Mark* marks = device_range.marks + device_offset(at);
  for (size_t i = 0; i < bytes; ++i) marks[i] |= kWritten;
}

void note_copied(const void* to, const void* from, size_t bytes) {
  Mark* marks = device_range.marks + device_offset(to);
  const Mark* sources = device_range.marks + device_offset(from);
  for (size_t i = 0; i < bytes; ++i)
    marks[i] = static_cast<Mark>((marks[i] & ~kWritten) | (sources[i] & kWritten));
}

bool is_written(const void* at, size_t bytes) {
  if (!kReportsAccesses) return true;
  const Mark* marks = device_range.marks + device_offset(at);
  return std::all_of(marks, marks + bytes, [](Mark m) { return (m & kWritten) != 0; });
}

void fence_off(const void* at, size_t bytes, bool on) {
  Mark* marks = device_range.marks + device_offset(at);
  for (size_t i = 0; i < bytes; ++i)
    marks[i] = static_cast<Mark>(on ? marks[i] | kFenced : marks[i] & ~kFenced);
}

// ---- accesses of kernels

const char* fault_of_marks(const Mark* marks, size_t count, bool reads) {
  for (const Mark* m = marks; m < marks + count; ++m) {
    if ((*m & kAllocated) == 0) return "is accessed where nothing is allocated";
    if ((*m & kFenced) != 0) return "is accessed beside an operand";
    if (reads && (*m & kWritten) == 0) return "is read before it is written";
  }
  return nullptr;
}

bool find_on_device(const void* at, size_t* byte, size_t* bytes) {
  const std::lock_guard<std::mutex> lock(blocks().mutex);
  const auto* block = block_of(at);
  if (block == nullptr) return false;
  *byte = static_cast<size_t>(static_cast<const std::byte*>(at) - block->first);
  *bytes = block->second.bytes;
  return true;
}

void end_launch_on_device() {
  const std::lock_guard<std::mutex> lock(blocks().mutex);
  if (blocks().bytes <= kMostKept) return;
  for (const auto& [at, block] : blocks().all) discard_uses(block);
}

}  // namespace sinter::cuda::emulator
