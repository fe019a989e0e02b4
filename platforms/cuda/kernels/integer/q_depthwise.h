// Arguments of kernels/integer/q_depthwise.cu.
#pragma once

#include "platforms/cuda/kernels/integer/integer_result.h"
#include "platforms/cuda/kernels/window/window.h"

namespace sinter::cuda {

inline constexpr int kQDepthwisePixels = 4;   // of a thread, adjacent ones of a line
inline constexpr int kDepthwiseChannels = 4;  // of a thread

// Computes y[pixel, o] = result(float(sum) * multipliers[o]), where sum = bias[o] + the sum over the window
// of (x[at, o / channel_multiplier] - x_zero) * (w[tap, o] - w_zeros[o]).
struct QDepthwiseArguments {
  std::byte* y = nullptr;
  const std::byte* x = nullptr;  // int8 or int16
  const int8_t* w = nullptr;
  const void* bias = nullptr;  // int32, int64 if x is int16
  const float* multipliers = nullptr;
  const int8_t* w_zeros = nullptr;  // null: 0
  int32_t multiplier_step = 0, w_zero_step = 0;
  int32_t x_zero = 0, x_width = 1;

  WindowRows window;
  int32_t kernel[3] = {1, 1, 1};
  int64_t y_step = 0;
  uint32_t items = 0;  // pieces of work
  Divider channels;    // of y, or groups of them
  Divider channel_multiplier;
  Divider line_pieces;  // pieces of a line of pixels
  uint32_t line = 0;    // its pixels
  Divider planes;       // of lines, of an image
  IntegerResult result;
};

}  // namespace sinter::cuda
