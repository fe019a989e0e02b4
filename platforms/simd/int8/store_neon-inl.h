// The end of an int8 product on 64-bit ARM: sums are scaled, rounded, narrowed and stored while they are in
// registers.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_STORE_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_STORE_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_STORE_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_STORE_NEON_INL_H_
#endif

#include "platforms/simd/int8/int8-inl.h"
#include "platforms/simd/int8/int8.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The end of one panel of eight columns, whose weights have no zero points.
struct StoreBytes {
  static constexpr bool kTogether = true;
  const float* multipliers;  // of the panel's columns, finite
  int8_t* y;                 // its first column
  const int64_t* y_rows;
  int64_t valid;  // columns
  int16_t zero;
  int8_t low, high;

  // The conversion to integers gives 0 for NaN.
  static HWY_INLINE bool takes(const float* multipliers, int64_t n) { return finite(multipliers, n); }

  // Returns whether the bounds are those of int8, and sums of as many products, scaled, are int16, whatever
  // the input.
  HWY_INLINE bool usual(const int32_t* bias, int64_t depth) const {
    return low == -128 && high == 127 && scaled_sums_fit(bias, multipliers, depth);
  }

  // Stores a row's two vectors, and the next row's.
  HWY_INLINE void two(int64_t row, bool both, V32 a, V32 b, V32 c, V32 e) const {
    const VF m = hn::LoadU(DF(), multipliers), n = hn::LoadU(DF(), multipliers + 4);
    const V8 v = bytes(rounded(a, m), rounded(b, n), rounded(c, m), rounded(e, n));
    if (HWY_LIKELY(valid == 8)) {
      const hn::Half<D8> half;
      hn::StoreU(hn::LowerHalf(half, v), half, y + y_rows[row]);
      if (both) hn::StoreU(hn::UpperHalf(half, v), half, y + y_rows[row + 1]);
    } else {
      store_parts(v, row, both ? 2 : 1, 8);
    }
  }
  // Stores one vector each of up to four rows.
  HWY_INLINE void four(int64_t row, int count, V32 a, V32 b, V32 c, V32 e) const {
    const VF m = hn::LoadU(DF(), multipliers);
    store_parts(bytes(rounded(a, m), rounded(b, m), rounded(c, m), rounded(e, m)), row, count, 4);
  }

 private:
  // Rounds half to even; saturates, as all of the narrowing does.
  static HWY_INLINE V32 rounded(V32 sum, VF multiplier) {
    return V32(vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sum.raw), multiplier.raw)));
  }
  HWY_INLINE V8 bytes(V32 a, V32 b, V32 c, V32 e) const {
    const int16x8_t z = vdupq_n_s16(zero);
    const int16x8_t ab = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(a.raw), b.raw), z),
                    ce = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(c.raw), e.raw), z);
    const int8x16_t v = vqmovn_high_s16(vqmovn_s16(ab), ce);
    return V8(vminq_s8(vmaxq_s8(v, vdupq_n_s8(low)), vdupq_n_s8(high)));
  }
  HWY_INLINE void store_parts(V8 v, int64_t row, int count, int64_t width) const {
    HWY_ALIGN int8_t part[16];
    hn::Store(v, D8(), part);
    for (int r = 0; r < count; ++r) store_columns(part + r * width, valid, y + y_rows[row + r]);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
