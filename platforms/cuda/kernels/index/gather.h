// Arguments of kernels/index/gather.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/grid/fault.h"

namespace sinter::cuda {

// Computes to[n] = from[n, displaced by the indices of n], for the elements of a box, each of `width` bytes.
struct GatherArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* indices = nullptr;
  Box box;
  Steps steps[3];     // of `to`, of `from` without the axes that indices choose from, of the indices
  int32_t depth = 1;  // indices of an element, one behind the other
  int64_t dims[kBoxRank] = {};    // of the axes that they choose from
  int64_t places[kBoxRank] = {};  // bytes from an element to the next along those
  int32_t index_width = 8, width = 4;
  FaultPlace fault;
};

}  // namespace sinter::cuda
