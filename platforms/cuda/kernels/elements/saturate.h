// Conversions of floating-point numbers to integers.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "platforms/cuda/grid/portable.h"

namespace sinter::cuda {

// Rounds towards zero; a number out of range becomes the nearest end, NaN becomes 0.
template <class Int, class T>
SINTER_DEVICE Int saturated(T x) {
  using Limits = std::numeric_limits<Int>;
  // One beyond the largest number, exact in T.
  constexpr T kEnd = static_cast<T>(uint64_t{1} << (Limits::digits - 1)) * T(2);
  constexpr T kLowest = Limits::is_signed ? -kEnd : T(0);
  return x != x ? Int{0} : x >= kEnd ? Limits::max() : x <= kLowest ? Limits::min() : static_cast<Int>(x);
}

}  // namespace sinter::cuda
