// Steps that compute a function of two operands of one type, with broadcasting.
#pragma once

#include "platforms/cuda/operators/element_program.h"

namespace sinter::cuda {

// The result is clamped to lower .. upper if its elements are floats.
Status add_binary(Lowering& l, FloatFunction of_floats, IntegerFunction of_integers,
                  double lower = -kInfinity, double upper = kInfinity);

}  // namespace sinter::cuda
