// Checks of a call that are the same for every kernel table.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter {

// Arity, then the op's own inference. Fills call.outputs.
Status infer(OpCall& call, KernelTable kernels);

// Whether an op with `row` in its row takes an operand with these strides, its first one or another.
bool takes_strides(Strides row, const TensorView& view, bool first);

}  // namespace sinter
