// QConv of few output channels with pixels in the lanes (pixel_lanes.h). Sums wrap modulo 2^32, so the
// results are the bits of docs/numerics.md.
#pragma once

#include "platforms/simd/int8/gemm.h"
#include "platforms/simd/pixel_lanes.h"

namespace sinter::simd {

struct QNarrow {
  Geometry g;
  int64_t x_zero = 0;
  const int8_t* x = nullptr;
  ProductResult result;
  QBoxes boxes;
};

// Whether the instruction set in use gains by it, where narrow_fits.
bool q_narrow_gains(const Geometry& g);

// `n` has all but its boxes, which are chosen for `threads`; false where the memory cannot be counted.
[[nodiscard]] bool choose_q_narrow_boxes(QNarrow* n, int64_t threads);
// Of packed weights (words, then of each channel int32 bias and float multiplier), and of one thread's
// scratch; both are bounds over all instruction sets.
[[nodiscard]] bool q_narrow_packed_bytes(const QNarrow& n, int64_t* bytes);
[[nodiscard]] bool q_narrow_scratch_bytes(const QNarrow& n, int64_t* bytes);

void pack_q_narrow(const Geometry& g, int64_t x_zero, const QWeights& from, std::byte* packed);
void run_q_narrow(const QNarrow& n, const std::byte* packed, const QBox& box, std::byte* scratch);

}  // namespace sinter::simd
