// The functions of operators.def.
#pragma once

#include "platforms/cuda/lowering.h"

namespace sinter::cuda {

#define SINTER_CUDA(op, family) Status lower_##op(Lowering& l);
#include "platforms/cuda/operators.def"
#undef SINTER_CUDA

// Returns the function of an operation, or null if the device does not compute it.
Status (*operator_of(Op op))(Lowering&);

}  // namespace sinter::cuda
