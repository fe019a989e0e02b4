// The portable reference kernels: one for every row of ops.def, correct before fast, any target.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter {

// All rows in ops.def's order (index with op_index). An application that wants a smaller program hands in a
// table of its own with just the kernels that its model needs.
KernelTable reference_kernels();

// Arity, then the op's own inference. Fills call.outputs.
Status infer(OpCall& call, KernelTable kernels);
// Fails unless the outputs' dtypes and dims are what the op gives for these inputs and attributes.
// call.outputs is at most kMaxCheckedOutputs long.
Status validate(const OpCall& call, KernelTable kernels);

#define SINTER_OP(name, ...) extern const Kernel k##name##Kernel;
#include "schemas/ops.def"
#undef SINTER_OP

}  // namespace sinter
