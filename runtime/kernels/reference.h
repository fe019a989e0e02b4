// The portable reference kernels: one for every row of ops.def, correct before fast, any target.
#pragma once

#include "runtime/backend/kernel.h"
#include "runtime/backend/validate.h"

namespace sinter {

// Returns all rows in ops.def's order (index with op_index). For a smaller program, an application passes a
// table of its own with just the kernels that its model needs.
KernelTable reference_kernels();

#define SINTER_OP(name, ...) extern const Kernel k##name##Kernel;
#include "schemas/ops.def"
#undef SINTER_OP

// Defines a row of the table. A sealed build does not verify, so it leaves out functions that only the
// verifier calls.
consteval Kernel reference_kernel(Kernel kernel) {
#ifdef SINTER_SEALED
  kernel.infer = nullptr;
  kernel.lead = nullptr;
#endif
  return kernel;
}

}  // namespace sinter
