// Conv of few output channels with pixels in the lanes (pixel_lanes.h).
#pragma once

#include "platforms/simd/pixel_lanes.h"
#include "runtime/backend/backend.h"

namespace sinter::simd {

// Returns whether the kernel takes a convolution of these sizes; the same on every machine. Without a window,
// cells are not read often enough to pay.
inline bool narrow_conv_takes(const Geometry& g) { return g.taps() > 1 && narrow_fits(g); }
// The channels up to which all instruction sets gain by it.
constexpr int64_t kNarrowOnAll = 4;
// Returns whether the set in use gains by it: more channels fill enough lanes of other kernels, unless its
// vectors are long.
bool narrow_conv_gains(const Geometry& g);

// Counts the workspace of run_narrow_conv() on up to `threads` threads. False if it overflows.
[[nodiscard]] bool narrow_conv_workspace(const OpCall& call, int threads, int64_t* bytes);
// Computes a call whose filters are not constant, and packs them first.
Status run_narrow_conv(const OpCall& call, RunContext& context);

}  // namespace sinter::simd
