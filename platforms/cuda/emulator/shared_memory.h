// A block's shared memory in the emulator, and the last uses of each byte of it.
#pragma once

#include <cstddef>
#include <vector>

#include "platforms/cuda/emulator/uses.h"

namespace sinter::cuda::emulator {

class SharedMemory {
 public:
  static constexpr size_t kMost = size_t{64} << 10;

  SharedMemory();
  // Begins a block with this much memory, at most kMost, of which nothing is written.
  void begin(size_t bytes);
  size_t bytes() const { return bytes_; }
  // Returns the byte's address, or null if the access breaks the rules, and *fault states how.
  std::byte* read(int at, size_t bytes, size_t alignment, const char** fault);
  std::byte* write(int at, size_t bytes, size_t alignment, const char** fault);

 private:
  const char* check(int at, size_t bytes, size_t alignment) const;

  std::vector<std::byte> data_;
  std::vector<Uses> words_, of_bytes_;
  std::vector<uint8_t> split_;
  ByteUses uses_;  // the uses of these vectors
  size_t bytes_ = 0;
};

}  // namespace sinter::cuda::emulator
