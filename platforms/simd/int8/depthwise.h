// The common parts of QDepthwiseConv of int8. A block is 16 channels, which are computed box by box.
#pragma once

#include "platforms/simd/int8/conv_tile.h"
#include "platforms/simd/int8/int8.h"

namespace sinter::simd {

constexpr int64_t kDepthwisePixels = 4;  // summed side by side
constexpr int64_t kQChannels = 16;       // of a block

struct QDepthwise {
  Geometry g;
  const int8_t* x = nullptr;
  int32_t x_zero = 0;
  ProductResult result;
  // Packed weights, block by block, then the numbers of all channels of whole blocks:
  std::byte* weights = nullptr;
  int32_t* bias = nullptr;
  float* multipliers = nullptr;
};

// The form in which an instruction set holds an input line: groups of neighbouring pixels, channel by
// channel, that begin at every `spacing`-th pixel.
struct DepthwiseForm {
  int64_t taps, spacing;  // pixels
  int64_t element;        // bytes of a number

  // Returns the groups of a window's line, wherever it begins.
  int64_t groups_of(const Geometry& g) const { return divide_up(g.kernel[2] + spacing - 1, taps); }
  // Returns the groups that `pixels` windows of a line read, rounded up to whole kDepthwisePixels.
  int64_t line_groups(const Geometry& g, int64_t pixels) const {
    const int64_t last = (divide_up(pixels, kDepthwisePixels) * kDepthwisePixels - 1) * g.stride[2];
    return last / spacing + (groups_of(g) - 1) * (taps / spacing) + 1;
  }
};
inline constexpr DepthwiseForm kQuads = {4, 2, 1}, kPairs = {2, 2, 2}, kSingles = {1, 1, 2};

}  // namespace sinter::simd
