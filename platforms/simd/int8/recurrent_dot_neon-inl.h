// Multiplies gate rows of int8 by a vector of int16 by dot products of bytes, on 64-bit ARM: each number of
// the vector is 256 times a byte plus a byte, and both are multiplied.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_RECURRENT_DOT_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_RECURRENT_DOT_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_RECURRENT_DOT_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_RECURRENT_DOT_NEON_INL_H_
#endif

#include "platforms/simd/int8/int8-inl.h"

#if HWY_TARGET == HWY_NEON  // with dot products of bytes (isa/config.h)
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr int64_t kDotRows = 8, kDotDepths = 16;

constexpr int16_t kMostOfTwoBytes = 32639;  // of 256 * high + low

// Returns whether n numbers are at most that.
HWY_INLINE bool fit_two_bytes(const int16_t* v, int64_t n) {
  int16x8_t most = vdupq_n_s16(-32768);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) most = vmaxq_s16(most, vld1q_s16(v + i));
  int16_t last = vmaxvq_s16(most);
  for (; i < n; ++i) last = std::max(last, v[i]);
  return last <= kMostOfTwoBytes;
}

// Sixteen numbers as 256 * high + low, or with kWide, which holds all of int16, as 256 * high + low + 128.
template <bool kWide>
struct TwoBytes {
  int8x16_t low, high;
  HWY_INLINE explicit TwoBytes(const int16_t* v) {
    const int8x16_t a = vreinterpretq_s8_s16(vld1q_s16(v)), b = vreinterpretq_s8_s16(vld1q_s16(v + 8));
    low = vuzp1q_s8(a, b), high = vuzp2q_s8(a, b);
    if constexpr (kWide)
      low = veorq_s8(low, vdupq_n_s8(-128));
    else
      high = vsubq_s8(high, vshrq_n_s8(low, 7));
  }
};

// Computes to[r] = float(row r . v) * multipliers[r] + bias[r] for eight rows of at least kDotDepths numbers.
template <bool kWide>
HWY_NOINLINE void flow_in_eight(const int8_t* weights, int64_t depth, const int16_t* v,
                                const float* multipliers, const float* bias, float* to) {
  const int32x4_t none = vdupq_n_s32(0);
  int32x4_t l0 = none, l1 = none, l2 = none, l3 = none, l4 = none, l5 = none, l6 = none, l7 = none;
  int32x4_t h0 = none, h1 = none, h2 = none, h3 = none, h4 = none, h5 = none, h6 = none, h7 = none;
  [[maybe_unused]] int32x4_t n0 = none, n1 = none, n2 = none, n3 = none, n4 = none, n5 = none, n6 = none,
                             n7 = none;  // sums of weights
  const int8x16_t one = vdupq_n_s8(1);
#define SINTER_ROWS \
  SINTER_ROW(0)     \
  SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3) SINTER_ROW(4) SINTER_ROW(5) SINTER_ROW(6) SINTER_ROW(7)
#define SINTER_ROW(r)                                                     \
  {                                                                       \
    const int8x16_t w = vld1q_s8(weights + r * depth + k);                \
    l##r = add_dots(V8(w), V8(x.low), V32(l##r)).raw;                     \
    h##r = add_dots(V8(w), V8(x.high), V32(h##r)).raw;                    \
    if constexpr (kWide) n##r = add_dots(V8(w), V8(ones), V32(n##r)).raw; \
  }
  const int64_t whole = depth / kDotDepths * kDotDepths;
  for (int64_t k = 0; k < whole; k += kDotDepths) {
    const TwoBytes<kWide> x(v + k);
    const int8x16_t ones = one;
    SINTER_ROWS
  }
  if (whole < depth) {
    // These are read together with numbers before, which count as zeros.
    int16_t last[kDotDepths] = {};
    int8_t counted[kDotDepths] = {};
    const int64_t first = kDotDepths - (depth - whole), k = depth - kDotDepths;
    std::memcpy(last + first, v + whole, static_cast<size_t>(depth - whole) * sizeof(int16_t));
    std::memset(counted + first, 1, static_cast<size_t>(depth - whole));
    TwoBytes<kWide> x(last);
    const int8x16_t ones = vld1q_s8(counted);
    if constexpr (kWide) x.low = vmulq_s8(x.low, ones);
    SINTER_ROWS
  }
#undef SINTER_ROW
#define SINTER_ROW(r)                           \
  l##r = vaddq_s32(l##r, vshlq_n_s32(h##r, 8)); \
  if constexpr (kWide) l##r = vaddq_s32(l##r, vshlq_n_s32(n##r, 7));
  SINTER_ROWS
#undef SINTER_ROW
#undef SINTER_ROWS
  const auto store = [&](int64_t i, int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t e) SINTER_SIMD_LAMBDA {
    const float32x4_t sums = vcvtq_f32_s32(vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, e)));
    vst1q_f32(to + i, vaddq_f32(vmulq_f32(sums, vld1q_f32(multipliers + i)), vld1q_f32(bias + i)));
  };
  store(0, l0, l1, l2, l3);
  store(4, l4, l5, l6, l7);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_NEON

#endif  // per-target include guard
