// Arguments of kernels/rope.cu.
#pragma once

#include "platforms/cuda/grid/box.h"

namespace sinter::cuda {

struct RopeArguments {
  std::byte* y = nullptr;
  const std::byte* x = nullptr;
  const std::byte* cos = nullptr;
  const std::byte* sin = nullptr;
  // One thread for a pair, or for an element that passes: `columns` a row, the first `pairs` of them pairs.
  Box rows;
  Steps cos_steps, sin_steps;  // bytes
  int64_t cos_step = 0, sin_step = 0;
  Divider columns;
  uint32_t threads = 0;
  int32_t pairs = 0, size = 0, interleaved = 0;
  int32_t is_double = 0;  // 1: elements are float64, 0: float32
};

}  // namespace sinter::cuda
