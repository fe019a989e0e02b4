// Arguments of kernels/index/check_length.cu.
#pragma once

#include <cstdint>

#include "platforms/cuda/grid/fault.h"

namespace sinter::cuda {

struct CheckLengthArguments {
  const int64_t *length = nullptr, *found = nullptr, *limit = nullptr;
  int64_t* result = nullptr;
  bool within = false;  // true: 0 <= found <= limit; false: found == limit
  FaultPlace fault;
};

}  // namespace sinter::cuda
