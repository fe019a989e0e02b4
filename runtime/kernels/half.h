// Numbers of 16 bits as element types of kernels: Half (float16) and BHalf (bfloat16). Reading one is exact;
// arithmetic is done in float32 or wider, and a stored result is rounded once, half to even.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/core/float_formats.h"

namespace sinter {

// Every kernel rounds to both types, so that inlined copies would take space.
[[gnu::noinline]] inline uint16_t rounded_to_float16(double x) { return float16_bits(x); }
[[gnu::noinline]] inline uint16_t rounded_to_bfloat16(double x) { return bfloat16_bits(x); }

struct Half {
  uint16_t bits;

  Half() = default;
  explicit Half(double x) : bits(rounded_to_float16(x)) {}
  operator float() const { return float16_value(bits); }
};
struct BHalf {
  uint16_t bits;

  BHalf() = default;
  explicit BHalf(double x) : bits(rounded_to_bfloat16(x)) {}
  operator float() const { return bfloat16_value(bits); }
};
static_assert(sizeof(Half) == 2 && std::is_trivially_copyable_v<Half>);
static_assert(sizeof(BHalf) == 2 && std::is_trivially_copyable_v<BHalf>);

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BHalf>;
template <class T>
inline constexpr bool kIsFloatElement = std::is_floating_point_v<T> || kIsHalf<T>;

// The type in which kernels without a wider accumulator compute: the element's own type, float for halves.
template <class T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;

}  // namespace sinter
