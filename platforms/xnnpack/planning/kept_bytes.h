// The memory that the library keeps for an operator besides packed weights.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::xnnpack {

// Bytes of the operator and of its indirection buffer: the address of an input pixel for each tap of each
// output pixel. An estimate that does not depend on the machine; SIZE_MAX where it exceeds the address range.
size_t kept_bytes(const OpCall& call);

}  // namespace sinter::xnnpack
