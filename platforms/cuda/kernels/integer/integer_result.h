// The result of integer kernels: int8 or int16, rounded and clamped, or float32 (docs/numerics.md). It is one
// of their arguments; kernels/integer/requantize.h computes by it.
#pragma once

#include <cstdint>

namespace sinter::cuda {

struct IntegerResult {
  float low = 0, high = 0;  // bounds before the zero point is added: integers
  int32_t zero = 0;
  int32_t width = 1;  // bytes of an element; 4: float32, neither rounded nor clamped
};

}  // namespace sinter::cuda
