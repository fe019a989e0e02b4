// Patches of a convolution's input: for each output pixel, the inputs that its window covers, zeros for the
// padding. They are the rows of a product with the filters.
#pragma once

#include "platforms/simd/window.h"

namespace sinter::simd {

// Patches of output pixels first .. first + count - 1 (over the whole batch) of x [N, spatial..., C], group
// `group`: `count` rows of taps() * C / group floats, without gaps.
void gather_patches(const Geometry& g, const float* x, int64_t group, int64_t first, int64_t count,
                    float* to);

}  // namespace sinter::simd
