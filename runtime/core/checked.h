// Arithmetic that reports overflow instead of wrapping; sizes from a file are combined by nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter {

// Each function stores the result in *out and returns true, or returns false if it does not fit.
template <class T>
[[nodiscard]] constexpr bool checked_add(T a, T b, T* out) {
  return !__builtin_add_overflow(a, b, out);
}
template <class T>
[[nodiscard]] constexpr bool checked_mul(T a, T b, T* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// Rounds up to a multiple of `alignment` (a power of two). The caller proves that it cannot overflow.
constexpr size_t align_up(size_t n, size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

}  // namespace sinter
