// Arguments of kernels/reduce/reduce.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/kernels/reduce/teams.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// kSum to kLogSumExp are those of ReduceFn.
enum class FoldFn : int32_t {
  kSum = 0,
  kMean,
  kMax,
  kMin,
  kProd,
  kSumSquare,
  kL1,
  kLogSumExp,
  kIndexOfMax,
  kIndexOfMin,
  kQuantizedMean,
};

// Computes y[k] as the fold of x's elements in set k, whose results are numbered as the elements of the box
// `kept`. A launch either folds elements of x, or the partial folds of an earlier launch: `parts` for each
// set. With `partial`, blocks of row y of the grid fold elements [y * chunk, (y + 1) * chunk) of each set and
// store the partial fold.
struct ReduceArguments {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::byte* partial = nullptr;  // [parts, kept.size] of the fold's state
  Box kept, set;
  Steps x_kept, y_kept, x_set;
  int64_t x_step = 0;  // of a set of one axis
  uint32_t count = 0;  // elements of a set
  uint32_t chunk = 0;
  int32_t parts = 0;     // 0: x is folded
  int32_t one_axis = 0;  // x_step is used
  int32_t select_last = 0;
  FoldFn fn = FoldFn::kSum;
  DType dtype = DType::kNone;
  Teams teams;

  // For integers. Unsigned numbers of 64 bits are ordered by their bits with the sign flipped.
  int64_t flip = 0;
  int64_t identity = 0;  // the bits of kMax's and kMin's result for an empty set

  // kQuantizedMean computes clamp(rne(float(sum - zeros) * multiplier) + y_zero).
  int32_t zeros = 0, y_zero = 0;
  float multiplier = 0, low = 0, high = 0;
};

}  // namespace sinter::cuda
