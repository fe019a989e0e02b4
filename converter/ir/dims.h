// A check of the sizes that a model claims, before any computation with them.
#pragma once

#include <span>

#include "runtime/core/tensor_view.h"

namespace sinter::convert {

// Whether the tensor's bytes and strides can be computed: the product of the dims other than 0 is in range.
inline bool plausible_dims(DType dtype, std::span<const int64_t> dims) {
  int64_t product = bit_width(dtype) > 0 ? bit_width(dtype) : 1;
  for (const int64_t d : dims)
    if (d < 0 || !checked_mul<int64_t>(product, d > 0 ? d : 1, &product)) return false;
  return product <= INT64_MAX - 7;
}

}  // namespace sinter::convert
