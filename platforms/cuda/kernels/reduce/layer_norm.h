// Arguments of kernels/reduce/layer_norm.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/kernels/reduce/teams.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// Computes y = (x - mean) / deviation * scale + bias over rows of `length` elements; all but scale and bias
// are dense. y may be x, and may be absent.
struct LayerNormArguments {
  const std::byte *x = nullptr, *scale = nullptr, *bias = nullptr;  // bias may be absent
  std::byte *y = nullptr, *mean = nullptr, *inverse = nullptr;      // each may be absent
  Box box;                                                          // of x
  Steps scale_steps, bias_steps;
  int64_t scale_step = 0, bias_step = 0;  // along a row, if they are the same for every row
  int32_t same_in_rows = 0;
  int32_t centre = 0;  // 0: the mean counts as 0
  uint32_t rows = 0, length = 0;
  double epsilon = 0;
  DType dtype = DType::kNone;
  Teams teams;
};

}  // namespace sinter::cuda
