// Steps that compute a function of one operand.
#pragma once

#include "platforms/cuda/operators/element_program.h"

namespace sinter::cuda {

// Adds a function of input 0, whose type computes in float or double.
Status add_unary(Lowering& l, FloatFunction function, std::initializer_list<double> with = {});
// Adds a function of input 0, of integers or bool.
Status add_unary(Lowering& l, IntegerFunction function, std::initializer_list<int64_t> with = {});

}  // namespace sinter::cuda
