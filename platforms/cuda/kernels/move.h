// Arguments of kernels/move.cu.
#pragma once

#include "platforms/cuda/grid/box.h"

namespace sinter::cuda {

// to[n] = from[n] for the elements of a box, each of `width` bytes (1, 2, 4, 8 or 16).
struct MoveArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Box box;
  Steps to_steps, from_steps;
  int32_t width = 4;
};

}  // namespace sinter::cuda
