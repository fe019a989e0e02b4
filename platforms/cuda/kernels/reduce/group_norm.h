// Arguments of kernels/reduce/group_norm.cu. All operands are dense.
#pragma once

#include <cstddef>

#include "platforms/cuda/grid/divider.h"
#include "platforms/cuda/kernels/reduce/teams.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// x is [samples, pixels, channels]; a group is `width` neighbouring channels of a sample.
struct GroupNormArguments {
  const std::byte *x = nullptr, *scale = nullptr, *bias = nullptr;
  std::byte* y = nullptr;
  std::byte* parts = nullptr;   // [samples, splits, channels]: the mean, and beside it the sum of the squares
  std::byte* groups = nullptr;  // [samples * groups]: the mean, and 1 / deviation
  uint32_t samples = 0, pixels = 0, channels = 0, width = 0, group_count = 0;
  uint32_t splits = 0, pixels_each = 0;      // of a split
  uint32_t size = 0;                         // elements of x
  Divider by_channels, by_width, by_sample;  // by_sample: elements of a sample
  double epsilon = 0;
  DType dtype = DType::kNone;
  Teams teams;  // those of one channel, or of one group
};

// Computes y = x / (bias + factor * sum of squares) ^ beta over channels c - before .. c + after.
struct LrnArguments {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  uint32_t size = 0;
  Divider by_channels;
  uint32_t before = 0, after = 0;
  double factor = 0, beta = 0, bias = 0;
  DType dtype = DType::kNone;
};

}  // namespace sinter::cuda
