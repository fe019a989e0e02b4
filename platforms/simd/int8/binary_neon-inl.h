// QAdd and QPRelu on 64-bit ARM, whose instructions add two vectors and narrow the sum to its high halves, or
// subtract and widen.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_BINARY_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_BINARY_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_BINARY_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_BINARY_NEON_INL_H_
#endif

#include "platforms/simd/int8/int8-inl.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Returns sixteen numbers with their zero point. Earlier saturation is the same, because the bounds are int8.
HWY_INLINE int8x16_t sixteen_bytes(int16x8_t a, int16x8_t b, const Result& r) {
  const int8x16_t v = vqmovn_high_s16(vqmovn_s16(vqaddq_s16(a, r.zero.raw)), vqaddq_s16(b, r.zero.raw));
  return vminq_s8(vmaxq_s8(v, r.min.raw), r.max.raw);
}

// Computes (a * a_multiplier + b * b_multiplier + offset) / 2^shift, rounded half to even; `shift` is at
// least 16. Sums are below 2^31: addhn leaves the bits above bit 16, which are shifted by the rest.
template <bool kTies>
struct SumOfTwo {
  int32x4_t a, b, offset, below_half, to_odd;
  int16x8_t rest;

  HWY_INLINE SumOfTwo(int32_t a_multiplier, int32_t b_multiplier, int32_t sum_offset, int shift)
      : a(vdupq_n_s32(a_multiplier)),
        b(vdupq_n_s32(b_multiplier)),
        offset(vdupq_n_s32(sum_offset + (kTies ? 0 : 1 << (shift - 1)))),
        below_half(vdupq_n_s32((1 << (shift - 1)) - 1)),
        to_odd(vdupq_n_s32(-shift)),
        rest(vdupq_n_s16(static_cast<int16_t>(16 - shift))) {}

  HWY_INLINE int16x8_t operator()(int16x8_t x, int16x8_t y) const {
    const int32x4_t low = vmlaq_s32(vmulq_s32(vmovl_s16(vget_low_s16(x)), a), vmovl_s16(vget_low_s16(y)), b),
                    high = vmlaq_s32(vmulq_s32(vmovl_high_s16(x), a), vmovl_high_s16(y), b);
    return vshlq_s16(vaddhn_high_s32(vaddhn_s32(even(low), added()), even(high), added()), rest);
  }

 private:
  HWY_INLINE int32x4_t added() const { return kTies ? below_half : offset; }
  HWY_INLINE int32x4_t even(int32x4_t sum) const {
    if constexpr (!kTies) return sum;
    sum = vaddq_s32(sum, offset);
    return vaddq_s32(sum, vandq_s32(vshlq_s32(sum, to_odd), vdupq_n_s32(1)));
  }
};

// n is a multiple of 16.
template <class Sum>
HWY_INLINE void add_sixteens(const int8_t* a, const int8_t* b, int8_t* y, size_t n, const Sum& sum,
                             const Result& result) {
  for (size_t i = 0; i < n; i += 16) {
    const int8x16_t p = vld1q_s8(a + i), q = vld1q_s8(b + i);
    vst1q_s8(y + i, sixteen_bytes(sum(vmovl_s8(vget_low_s8(p)), vmovl_s8(vget_low_s8(q))),
                                  sum(vmovl_high_s8(p), vmovl_high_s8(q)), result));
  }
}

// Results before the zero point are within int16: slopes and the multiplier are at most kInt16Slope.
constexpr float kInt16Slope = 128;

// Multiplies sixteen differences to the zero point by their slopes; n is a multiple of 16.
HWY_INLINE void prelu_sixteens(const int8_t* x, const float* slopes, size_t step, int8_t* y, size_t n,
                               int32_t x_zero, float multiplier, const Result& result) {
  const int8x8_t zero = vdup_n_s8(static_cast<int8_t>(x_zero));
  const float32x4_t positive = vdupq_n_f32(multiplier);
  for (size_t i = 0; i < n; i += 16, slopes += 4 * step) {
    const auto four = [&](int16x4_t difference, const float* slope) SINTER_SIMD_LAMBDA {
      const int32x4_t wide = vmovl_s16(difference);
      const float32x4_t m = vbslq_f32(vcltzq_s32(wide), vld1q_f32(slope), positive);
      return vreinterpretq_s16_s32(vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(wide), m)));
    };
    const int8x16_t v = vld1q_s8(x + i);
    const int16x8_t low = vsubl_s8(vget_low_s8(v), zero), high = vsubl_high_s8(v, vcombine_s8(zero, zero));
    const int16x8_t a = vuzp1q_s16(four(vget_low_s16(low), slopes), four(vget_high_s16(low), slopes + step)),
                    b = vuzp1q_s16(four(vget_low_s16(high), slopes + 2 * step),
                                   four(vget_high_s16(high), slopes + 3 * step));
    vst1q_s8(y + i, sixteen_bytes(a, b, result));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
