// The rule by which results of an operation may be in the memory of its operands.
#pragma once

#include <cstddef>

#include "runtime/core/op.h"

namespace sinter {

// Returns whether result `output` may be in the memory of operand `input`, if that dies there, has the same
// dims and element size, and is read only as `input`. The traits of the row decide.
inline bool may_be_in_place(Op op, size_t output, size_t input) {
  const uint32_t traits = op_info(op)->traits;
  if (output == 1) return (traits & kInPlaceState) != 0 && input == 3;
  return output == 0 && ((traits & kInPlace) != 0 || ((traits & kInPlaceFirst) != 0 && input == 0));
}

}  // namespace sinter
