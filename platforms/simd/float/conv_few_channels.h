// Conv of few output channels with pixels in the lanes (pixel_lanes.h).
#pragma once

#include "platforms/simd/pixel_lanes.h"

namespace sinter::simd {

struct NarrowConv {
  Geometry g;
  const float* x = nullptr;
  const float* bias = nullptr;  // may be null
  float min = 0, max = 0;
  float* y = nullptr;
  QBoxes boxes;
};

// Whether the kernel takes a convolution of these sizes; the same on every machine. Without a window, cells
// would not be read often enough to pay.
inline bool narrow_conv_takes(const Geometry& g) { return g.taps() > 1 && narrow_fits(g); }
// Up to this many channels all instruction sets gain by it.
constexpr int64_t kNarrowOnAll = 4;
// Whether the one in use does: more channels fill enough lanes of other kernels, unless its vectors are long.
bool narrow_conv_gains(const Geometry& g);

// `n` has its sizes; boxes are chosen for `threads`. False where the memory cannot be counted.
[[nodiscard]] bool choose_narrow_conv_boxes(NarrowConv* n, int64_t threads);
// Floats of packed filters; false on overflow.
[[nodiscard]] bool narrow_conv_packed(const Geometry& g, int64_t* floats);

// Of filters [out_channels, kernel..., in_channels].
void pack_narrow_conv(const Geometry& g, const float* filters, float* packed);
// `scratch`: narrow_scratch_bytes() of unit 1 for each thread.
void run_narrow_conv(const NarrowConv& n, const float* packed, std::byte* scratch, ThreadPool* threads);

}  // namespace sinter::simd
