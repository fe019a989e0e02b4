// Arguments of kernels/integer/q_product.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/kernels/integer/integer_result.h"
#include "platforms/cuda/kernels/window/window.h"

namespace sinter::cuda {

// The places of the results of a phase of a transposed convolution: row r's pixel is, along each axis, at
// first + stride * i.
struct ScatteredRows {
  int32_t on = 0;  // 0: row r is pixel r
  int32_t first[3] = {}, stride[3] = {1, 1, 1}, out[3] = {1, 1, 1};
};

// y[r, c] = result(float(sum) * multipliers[c]),
//   sum = terms[c] + sum over k of (x[r, k] - x_zero) * (w[c, k] - w_zero[c]),
// for each of several products: the groups of a convolution, or pairs of matrices. x is int8 or int16; so is
// w, but int16 only with x. Weights are rows of `pitch` elements, a multiple of 16; those from `depth` on are
// 0 in int8 and 128 in int16.
struct QProductArguments {
  std::byte* y = nullptr;
  const std::byte *x = nullptr, *w = nullptr;
  const void* terms = nullptr;  // int32, int64 if x is int16; null: 0
  const float* multipliers = nullptr;
  const int8_t* w_zeros = nullptr;  // null: w_zero
  float multiplier = 1;             // where `multipliers` is null
  int32_t multiplier_step = 0, w_zero_step = 0;
  int32_t x_zero = 0, w_zero = 0;
  // The terms contain the part of x_zero: -x_zero * (sum over k of w) + depth * x_zero * w_zero.
  int32_t folded = 0;
  int32_t wraps = 0;  // 1: sums are int32 even if x is int16

  uint32_t rows = 0, columns = 0, depth = 0;
  uint32_t x_depth = 0;  // elements of x's rows that may be read: depth, or more
  uint32_t unit = 1;     // 16, 4 or 1: adjacent elements of x, which begin at a multiple of that many
  uint32_t pitch = 16;
  WindowRows window;
  ScatteredRows scattered;
  int64_t y_step = 0;  // elements from a pixel to the next

  Box products;
  Steps x_steps, w_steps, y_steps, column_steps;  // the last one in columns, the others in bytes
  Divider column_tiles;
  IntegerResult result;
};

}  // namespace sinter::cuda
