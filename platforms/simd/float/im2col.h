// The patches of a convolution's input: for each output pixel, the inputs that its window covers, zeros for
// the padding. They are the rows of a product with the filters.
#pragma once

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/window.h"

namespace sinter::simd {

// Returns the patches that each of `threads` has room for. Up to three threads take no more memory than one.
inline int64_t slot_rows(int64_t threads) {
  return std::max(kRowTile / std::max<int64_t>(threads, 1), kRowTile / 3);
}

// Writes the patches of output pixels first .. first + count - 1 (over the whole batch) of x [N, spatial...,
// C], group `group`: `count` rows of taps() * C / group floats, without gaps.
void gather_patches(const Geometry& g, const float* x, int64_t group, int64_t first, int64_t count,
                    float* to);

}  // namespace sinter::simd
