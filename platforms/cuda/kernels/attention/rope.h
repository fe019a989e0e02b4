// Arguments of kernels/attention/rope.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

struct RopeArguments {
  std::byte* y = nullptr;
  const std::byte* x = nullptr;
  const std::byte* cos = nullptr;
  const std::byte* sin = nullptr;
  // A thread has a pair, or an element that passes: `columns` for each row, the first `pairs` of them pairs.
  Box rows;
  Steps cos_steps, sin_steps;  // bytes
  int64_t cos_step = 0, sin_step = 0;
  Divider columns;
  uint32_t threads = 0;
  int32_t pairs = 0, size = 0, interleaved = 0;
  DType dtype = DType::kFloat32;  // that of x and y; if it has 16 bits, cos and sin are float32
};

}  // namespace sinter::cuda
