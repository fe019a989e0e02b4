// Checks of a call that are the same for every kernel table.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter {

// Checks the arity and runs the op's own inference, which fills call.outputs.
Status infer(OpCall& call, KernelTable kernels);

// Returns whether an op with `row` in its row takes an operand with these strides, its first one or another.
bool takes_strides(Strides row, const TensorView& view, bool first);

}  // namespace sinter
