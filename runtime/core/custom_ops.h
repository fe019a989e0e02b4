// The custom operators that an application gives (sinter/custom_op.h), as a list of descriptors that it owns.
#pragma once

#include <span>

#include "runtime/core/status.h"
#include "sinter/custom_op.h"

namespace sinter {

using CustomOps = std::span<const sinter_custom_op* const>;

// Returns kInvalidArgument, with the name of the operator, unless each is complete, of this version of the
// interface, and given once.
Status check_custom_ops(CustomOps ops);

// Returns the operator of exactly this version, or null.
const sinter_custom_op* find_custom_op(CustomOps ops, const char* domain, const char* name, uint32_t version);

}  // namespace sinter
