// The memory that the library keeps for an operator besides packed weights.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::xnnpack {

// Returns the bytes of the operator and of its indirection buffer: the address of an input pixel for each tap
// of each output pixel. They are estimated alike on all machines; SIZE_MAX if they exceed the address range.
size_t kept_bytes(const OpCall& call);

}  // namespace sinter::xnnpack
