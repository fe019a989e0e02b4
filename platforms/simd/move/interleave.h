// Transposes of two to four rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter::simd {

// The move of `rows` (2 to 4) rows of `length` elements into one in which they alternate (joins), or the
// reverse, `count` times. `stride` is from one of the rows to the next.
struct Alternation {
  size_t rows, length, stride, count;
  int64_t from_step, to_step;
  bool joins;
};

}  // namespace sinter::simd
