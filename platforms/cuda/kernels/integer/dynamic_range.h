// Arguments of kernels/integer/dynamic_range.cu: the scale and zero point of a range of numbers
// (DynamicQuantize).
#pragma once

#include "platforms/cuda/grid/box.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

inline constexpr int kMostRangeBlocks = 256, kRangeElementsOfThread = 16;

struct DynamicParameters {
  float scale, one;  // one: 1
  uint8_t zero;      // or the bits of an int8
};

struct DynamicRangeArguments {
  const std::byte* x = nullptr;
  DType dtype = DType::kFloat32;
  Box box;
  Steps steps;
  int32_t blocks = 0;       // of the first kernel
  float* ranges = nullptr;  // a block's smallest and largest number
  DynamicParameters* parameters = nullptr;
  float* scale = nullptr;  // null: not wanted
  uint8_t* zero = nullptr;
  int32_t lowest = 0;  // of the type: 0 or -128
};

}  // namespace sinter::cuda
