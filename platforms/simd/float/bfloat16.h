// Operations on bfloat16 by the kernels for float32: operands are widened piece by piece, in the workspace,
// and results rounded once.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::simd {

// Returns whether operand 0 of an element-wise operation is bfloat16.
bool is_of_halves(const OpCall& call);
// Returns ok if `kernel`, of the same operation, computes the widened pieces.
Status accept_halves(const Kernel& kernel, const OpCall& call);
size_t halves_workspace(int threads);
Status run_halves(const Kernel& kernel, const OpCall& call, RunContext& context);

}  // namespace sinter::simd
