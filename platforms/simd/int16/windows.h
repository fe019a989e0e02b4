// The division of an int16 product, and its rows: the windows of output pixels.
#pragma once

#include "platforms/simd/int16/store.h"
#include "platforms/simd/window.h"

namespace sinter::simd {

inline constexpr int64_t kRows16 = 16;     // copied and multiplied at a time
inline constexpr int64_t kDepth16 = 32;    // their length is a multiple of this: a widest vector
inline constexpr int64_t kColumns16 = 64;  // their sums are held

struct Plan16 {
  Geometry g;
  int64_t columns = 0, depth = 0, stride = 0;  // of one group
  // The lines of a window, the numbers in each, and the distance of lines in a copied window, which is even,
  // because panels multiply pairs.
  int64_t lines = 1, line = 0, room = 0;
  int64_t x_zero = 0;
  End16 end;

  int64_t packed_depth() const { return lines * room; }
  // Returns whether the numbers of each line are adjacent in the input.
  bool in_lines() const { return g.group == 1 && g.dilation[2] == 1; }
};

Plan16 plan_q16(const OpCall& call);

// Copies the windows of output pixels first .. first + count - 1 to [count, p.stride].
void copy_q16_windows(const Plan16& p, const int16_t* x, int64_t first, int64_t count, int64_t group,
                      int16_t* to);

// Counts the scratch of one thread: rows, and their sums. False on overflow.
[[nodiscard]] bool q16_scratch_bytes(const Plan16& p, int64_t* bytes);

}  // namespace sinter::simd
