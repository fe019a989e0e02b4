// Arguments of kernels/reduce/cumulate.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/kernels/reduce/teams.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// Computes y[i] of a line as the fold of x[0 .. i], or of x[0 .. i - 1] if `exclusive`. If lines are walked
// backwards, x and y begin at their last elements and the steps are negative.
struct CumulateArguments {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  Box lines;
  Steps x_lines, y_lines;
  int64_t x_step = 0, y_step = 0;  // bytes along a line
  uint32_t length = 0;
  int32_t product = 0, exclusive = 0;
  DType dtype = DType::kNone;
  Teams teams;
};

}  // namespace sinter::cuda
