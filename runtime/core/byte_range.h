// The memory of a value or buffer, for checks that nothing is written over bytes that are still needed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter {

// The range of bytes that are written, or that must keep their contents. Padding behind them that is only
// read does not count.
struct ByteRange {
  uintptr_t begin = 0;
  size_t bytes = 0;

  ByteRange(const void* data, size_t size) : begin(reinterpret_cast<uintptr_t>(data)), bytes(size) {}
  bool overlaps(const ByteRange& other) const {
    if (bytes == 0 || other.bytes == 0) return false;
    return begin <= other.begin ? other.begin - begin < bytes : begin - other.begin < other.bytes;
  }
};

}  // namespace sinter
