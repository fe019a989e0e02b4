// Checks of positions and lengths.
#pragma once

#include "platforms/cuda/operators.h"

namespace sinter::cuda {

// Adds a launch that fails the run where one of the integers, along one axis, is not 0 to `most`, with
// `code`: for calls that have nothing else to do.
Status check_range(Lowering& l, const TensorView& numbers, int64_t most, FaultCode code);

}  // namespace sinter::cuda
