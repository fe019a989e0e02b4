// Convolution with few output channels: dot products along the window's lines, which are contiguous in
// channels-last memory. Reads the input in place, without patches, and the filters as they are.
#pragma once

#include "platforms/simd/window.h"

namespace sinter::simd {

struct NarrowConv {
  const float* x = nullptr;
  const float* filters = nullptr;  // [out_channels, kernel..., in_channels]
  const float* bias = nullptr;     // may be null
  float min = 0, max = 0;
  float* y = nullptr;
};

// Up to this many output channels a vector along the window's lines is fuller than one along the channels.
inline constexpr int64_t kNarrowOutputs = 4;
// One group, no dilation of the last axis. (The input is dense.)
inline bool narrow_conv_takes(const Geometry& g) {
  return g.out_channels <= kNarrowOutputs && g.group == 1 && g.dilation[2] == 1;
}
void run_narrow_conv(const Geometry& g, const NarrowConv& conv, ThreadPool* threads);

}  // namespace sinter::simd
