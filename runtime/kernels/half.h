// Half: a float16 number as an element type of kernels. Reading it is exact; arithmetic is done in float32 or
// wider; what is stored is rounded once, half to even.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/core/float_formats.h"

namespace sinter {

struct Half {
  uint16_t bits;

  Half() = default;
  explicit Half(double x) : bits(float16_bits(x)) {}
  operator float() const { return float16_value(bits); }
};
static_assert(sizeof(Half) == 2 && std::is_trivially_copyable_v<Half>);

template <class T>
inline constexpr bool kIsFloatElement = std::is_floating_point_v<T> || std::is_same_v<T, Half>;

// The type in which kernels without a wider accumulator compute: the element's own type, float for Half.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, Half>, float, T>;

}  // namespace sinter
