// Rows that are multiplied by the weights of an expert each.
#pragma once

#include "platforms/cuda/grid/fault.h"

namespace sinter::cuda {

struct Experts {
  const int64_t* of_row = nullptr;  // null: all rows have the same weights
  int64_t count = 0;
  FaultPlace fault;
};

}  // namespace sinter::cuda
