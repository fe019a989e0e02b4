// QDepthwiseConv of int8: what its parts share. A block is 16 channels, which are computed box by box.
#pragma once

#include "platforms/simd/int8.h"
#include "platforms/simd/q_box.h"

namespace sinter::simd {

constexpr int64_t kQChannels = 16;  // of a block

struct QDepthwise {
  Geometry g;
  const int8_t* x = nullptr;
  int32_t x_zero = 0;
  ProductResult result;
  // Packed: weights block by block, then for all channels of whole blocks:
  std::byte* weights = nullptr;
  int32_t* bias = nullptr;
  float* multipliers = nullptr;
};

}  // namespace sinter::simd
