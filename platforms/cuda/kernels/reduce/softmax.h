// Arguments of kernels/reduce/softmax.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/kernels/reduce/teams.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// Lines of `length` elements along one axis, numbered as the elements of a box. y may be x.
struct SoftmaxArguments {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  Box lines;
  Steps x_lines, y_lines;
  int64_t x_step = 0, y_step = 0;  // bytes along a line
  uint32_t length = 0;
  int32_t log = 0;
  DType dtype = DType::kNone;
  Teams teams;
};

// The same for int8: y = clamp(rne(table[largest - x] * multiplier / (sum of the line's entries * 2^shift)) +
// y_zero)
struct QSoftmaxArguments {
  SoftmaxArguments of;
  const std::byte* table = nullptr;  // uint32
  int64_t table_step = 4;            // bytes
  uint32_t multiplier = 256;
  int32_t shift = 0, y_zero = 0, low = 0, high = 0;
};

}  // namespace sinter::cuda
