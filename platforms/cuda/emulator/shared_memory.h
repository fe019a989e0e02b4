// A block's shared memory in the emulator, and who used which byte since the last barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sinter::cuda::emulator {

// A thread at a point of its run: `epoch` and `warp_epoch` count the meetings of its block and warp.
struct Accessor {
  uint16_t thread = 0, warp = 0;
  uint32_t epoch = 0, warp_epoch = 0;
};

class SharedMemory {
 public:
  static constexpr size_t kMost = size_t{64} << 10;

  SharedMemory() : data_(kMost), uses_(kMost) {}
  // For a block with this much, at most kMost, of which nothing is written.
  void begin(size_t bytes);
  size_t bytes() const { return bytes_; }
  // Null, or how the access breaks the rules.
  const char* read(const Accessor& by, int at, size_t bytes, size_t alignment);
  const char* write(const Accessor& by, int at, size_t bytes, size_t alignment);
  // Memory in any case.
  std::byte* data(int at, size_t bytes);

 private:
  // Accesses of one byte in one epoch. A thread beyond all: several.
  struct Use {
    uint32_t epoch = 0, warp_epoch = 0;
    uint16_t thread = 0, warp = 0;
  };
  struct Byte {
    Use written, read;
    uint32_t block = 0;  // in which it was written last
  };
  static bool meets(const Use& use, const Accessor& by);
  static void note(Use& use, const Accessor& by);
  const char* check(int at, size_t bytes, size_t alignment) const;

  std::vector<std::byte> data_;
  std::vector<Byte> uses_;
  size_t bytes_ = 0;
  uint32_t block_ = 0;
  std::byte outside_[64] = {};
};

}  // namespace sinter::cuda::emulator
