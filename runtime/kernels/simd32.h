// Sums of int8 products by the 32-bit SIMD instructions of ARM cores without NEON (Cortex-M4, M7, M33, M55):
// two products of 16 bits and both sums in one instruction. Sums are in another order than in plain loops,
// with the same bits: integers wrap.
#pragma once

#if defined(__ARM_FEATURE_SIMD32) && !defined(__ARM_NEON)
#define SINTER_SIMD32 1
#include <arm_acle.h>
#else
#define SINTER_SIMD32 0
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sinter::simd32 {

#if SINTER_SIMD32

// Reads four adjacent bytes.
inline uint32_t load_four(const int8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
// Returns bytes 1 and 3; __sxtb16 and __sxtab16 read bytes 0 and 2.
inline uint32_t odd(uint32_t four) { return four >> 8; }
// Returns minus `zero`, which is added to every value, twice in 16 bits.
inline uint32_t negated(uint32_t zero) { return ((0 - zero) & 0xffff) * 0x10001u; }

// Computes sums[r] += sum over k < depth of (x[r][k] - x_zero) * (w[k] - w_zero), for kRows rows and a depth
// that is a multiple of four. |x - x_zero| and |w - w_zero| are below 2^15.
template <int kRows>
inline void add_dots(const int8_t* const* x, uint32_t x_zero, const int8_t* w, uint32_t w_zero, size_t depth,
                     uint32_t* sums) {
  const uint32_t from_x = negated(x_zero), from_w = negated(w_zero);
  uint32_t sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = sums[r];
  for (size_t k = 0; k < depth; k += 4) {
    const uint32_t four = load_four(w + k);
    const uint32_t w_even = __sxtab16(from_w, four), w_odd = __sxtab16(from_w, odd(four));
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const uint32_t v = load_four(x[r] + k);
      sum[r] = static_cast<uint32_t>(__smlad(__sxtab16(from_x, v), w_even, static_cast<int32_t>(sum[r])));
      sum[r] = static_cast<uint32_t>(__smlad(__sxtab16(from_x, odd(v)), w_odd, static_cast<int32_t>(sum[r])));
    }
  }
  for (int r = 0; r < kRows; ++r) sums[r] = sum[r];
}

// Computes sums[c] += (x[c] - x_zero) * w[c] for `count` adjacent values, a multiple of four.
inline void add_products(const int8_t* x, uint32_t x_zero, const int8_t* w, size_t count, uint32_t* sums) {
  const uint32_t from_x = negated(x_zero);
  const auto add = [](int32_t a, int32_t b, uint32_t* to) {
    *to = static_cast<uint32_t>(__smlabb(a, b, static_cast<int32_t>(*to)));
  };
  const auto add_upper = [](int32_t a, int32_t b, uint32_t* to) {
    *to = static_cast<uint32_t>(__smlatt(a, b, static_cast<int32_t>(*to)));
  };
  for (size_t c = 0; c < count; c += 4) {
    const uint32_t v = load_four(x + c), four = load_four(w + c);
    const auto even = static_cast<int32_t>(__sxtab16(from_x, v)),
               w_even = static_cast<int32_t>(__sxtb16(four));
    const auto uneven = static_cast<int32_t>(__sxtab16(from_x, odd(v))),
               w_uneven = static_cast<int32_t>(__sxtb16(odd(four)));
    add(even, w_even, sums + c);
    add(uneven, w_uneven, sums + c + 1);
    add_upper(even, w_even, sums + c + 2);
    add_upper(uneven, w_uneven, sums + c + 3);
  }
}

#endif

}  // namespace sinter::simd32
