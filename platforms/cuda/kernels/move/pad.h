// Arguments of kernels/move/pad.cu.
#pragma once

#include "platforms/cuda/grid/box.h"

namespace sinter::cuda {

enum class PadKind : int32_t { kConstant, kReflect, kEdge, kWrap };

struct PadAxis {
  int32_t begin = 0, dim = 1;  // elements before, and of the operand
  Divider period;              // kReflect and kWrap: elements after which the pattern repeats
  uint32_t phase = 0;          // the place in the pattern at which the result begins
};

// `to` has the elements of a box, of `width` bytes, and `from` those of a smaller box within it.
struct PadArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* fill =
      nullptr;  // one element of `fill_width` bytes, of which `width` is a multiple; null: zeros
  Box box;
  Steps steps[2];  // of `to`, of `from`
  PadAxis axes[kBoxRank];
  PadKind kind = PadKind::kConstant;
  int32_t width = 4, fill_width = 4;
};

}  // namespace sinter::cuda
