// Arguments of kernels/window/depthwise.cu.
#pragma once

#include "platforms/cuda/kernels/product/product.h"

namespace sinter::cuda {

// Computes y[pixel][o] = clamp(bias[o] + sum of x[pixel under tap][o / multiplier] * w[tap][o]).
struct DepthwiseArguments {
  const std::byte* x = nullptr;
  const std::byte* w = nullptr;
  const std::byte* bias = nullptr;  // or null
  std::byte* y = nullptr;
  Element element = Element::kFloat32;

  int32_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int32_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  int64_t in_step = 0, out_step = 0, image_step = 0;  // elements between pixels, and images of x
  int32_t channels = 0;                               // of y
  Divider multiplier;

  // A thread has some channels of some pixels of a line. These are the numbers of such groups, of an image's
  // lines, and of the lines of its first axis.
  Divider channel_groups, pixel_groups, lines, line_axis;
  int32_t line_pixels = 0;  // of y
  uint32_t threads = 0;

  double low = 0, high = 0;
  int64_t low_int = 0, high_int = 0;
};

inline constexpr int kDepthwisePixels = 4;  // of a thread of the kernels for 16 bytes of channels

}  // namespace sinter::cuda
