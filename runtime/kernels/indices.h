// Functions for kernels with index operands.
#pragma once

#include "runtime/backend/index.h"
#include "runtime/kernels/support.h"

namespace sinter {

// Returns the product of dims [begin, end) of a verified view.
inline int64_t product(const TensorView& v, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= v.dims[i];
  return n;
}

// Refuses elements of less than a byte.
inline Status check_whole_bytes(DType t) {
  SINTER_RETURN_UNLESS(byte_width(t) != 0, unsupported("elements of packed type number %a are not moved",
                                                       static_cast<int64_t>(t)));
  return ok_status();
}

}  // namespace sinter
