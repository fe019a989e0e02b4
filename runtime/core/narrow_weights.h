// The floats of 8 and 16 bits that FullyConnected and Conv take as weights of wider values.
#pragma once

#include "runtime/core/dtype.h"

namespace sinter {

constexpr bool is_narrow_weight(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 || (is_float8(t) && t != DType::kFloat8E8M0);
}

}  // namespace sinter
