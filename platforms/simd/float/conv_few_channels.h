// Conv of few output channels with pixels in the lanes (pixel_lanes.h).
#pragma once

#include "platforms/simd/pixel_lanes.h"
#include "runtime/backend/backend.h"

namespace sinter::simd {

// Whether the kernel takes a convolution of these sizes; the same on every machine. Without a window, cells
// would not be read often enough to pay.
inline bool narrow_conv_takes(const Geometry& g) { return g.taps() > 1 && narrow_fits(g); }
// Up to this many channels all instruction sets gain by it.
constexpr int64_t kNarrowOnAll = 4;
// Whether the one in use does: more channels fill enough lanes of other kernels, unless its vectors are long.
bool narrow_conv_gains(const Geometry& g);

// Bytes of workspace of run_narrow_conv() on up to `threads` threads. False where they cannot be counted.
[[nodiscard]] bool narrow_conv_workspace(const OpCall& call, int threads, int64_t* bytes);
// A call with filters that are not constant, which are packed first.
Status run_narrow_conv(const OpCall& call, RunContext& context);

}  // namespace sinter::simd
