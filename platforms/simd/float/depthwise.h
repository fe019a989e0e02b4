// Float32 convolutions with one filter for each channel. Every element is summed from its bias on, in the
// order of the taps; taps outside the input are left out. No result depends on blocks or threads.
#pragma once

#include "platforms/simd/window.h"

namespace sinter::simd {

struct Depthwise {
  Geometry g;  // as many output as input channels
  const float* x = nullptr;
  const float* filter = nullptr;  // [taps, channels]
  const float* bias = nullptr;    // per channel, or null
  float min = -HUGE_VALF, max = HUGE_VALF;
  float* y = nullptr;
};

// ---- Windows of three or five adjacent columns, stride 1 or 2 along the columns: in depthwise_blocks.cc.

// The sums of a block's columns and the taps of one line fit into sixteen vector registers.
constexpr int64_t kDepthwiseColumns = 8, kMinDepthwiseColumns = 4;
// Three lines of a block's input and the filters stay in the first cache.
constexpr int64_t kDepthwiseChannels = 256;

// The extent of a block: a few columns of some lines of the result, and some of their channels.
struct DepthwiseBlock {
  int64_t plane = 0;  // batch * g.out[0] + the position on the first axis
  int64_t line = 0, lines = 0;
  int64_t column = 0, columns = 0;    // kMinDepthwiseColumns to kDepthwiseColumns
  int64_t channel = 0, channels = 0;  // at least depthwise_channels()
  bool fetch = false;                 // fetches the next line's input while computing one
};

// Returns the fewest channels that the instruction set's kernel takes.
int64_t depthwise_channels();
// Returns whether blocks serve this window, whatever the number of channels.
bool has_depthwise_blocks(const Geometry& g);
void compute_depthwise_block(const Depthwise& d, const DepthwiseBlock& b);

// ---- Windows of 3x3 on 64-bit ARM: in depthwise_3x3_neon-inl.h.

// Returns whether whole lines serve this call; false on other processors.
bool has_depthwise_lines(const Geometry& g);
// Computes lines first .. end - 1 of plane `plane` (batch * g.out[0] + the position on the first axis).
void compute_whole_depthwise_lines(const Depthwise& d, int64_t plane, int64_t first, int64_t end);

// ---- Any window, pixel by pixel: in depthwise_pixels.cc.

// Computes lines first .. end - 1 of the last axis, counted over the whole batch.
void compute_depthwise_lines(const Depthwise& d, int64_t first, int64_t end);

}  // namespace sinter::simd
