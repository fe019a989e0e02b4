// Arguments of kernels/window/pool.cu.
#pragma once

#include "platforms/cuda/grid/divider.h"
#include "platforms/cuda/kernels/reduce/teams.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// The bytes that a thread loads at once if channels permit it.
inline constexpr int kPoolBytes = 16;

// Windows over three axes of [images, in..., channels]; missing axes, the first, have length 1.
struct PoolArguments {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;            // null: only indices are wanted
  int64_t* indices = nullptr;        // max_pool_indices
  int64_t x_pixel = 0, y_pixel = 0;  // bytes from a pixel to the next
  uint32_t windows = 0;              // of all images
  Divider channels;
  uint32_t vectors = 0;  // vectors of kPoolBytes bytes in a pixel; 0: pixels do not consist of these
  Divider vector_divider;
  Teams teams;  // of several threads if a window has taps along the last axis alone, not for indices
  Divider in[3], out[3], dilation[3];
  int32_t kernel[3] = {}, stride[3] = {}, pad[3] = {}, end_pad[3] = {};
  DType type = DType::kFloat32;
  int32_t column_major = 0;    // max_pool_indices
  int32_t counts_padding = 0;  // avg_pool, q_avg_pool
  // for q_avg_pool
  int32_t x_zero = 0, y_zero = 0;
  float low = 0, high = 0;  // bounds of the result, without y_zero
  double multiplier = 1;
  int32_t usual_count = 1;     // elements of most windows,
  float usual_multiplier = 1;  // and the multiplier of each
};

}  // namespace sinter::cuda
