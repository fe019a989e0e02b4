// Vectors of Quantize, Dequantize and DynamicQuantize: the bits of the reference kernels.
#include "platforms/simd/int8/quantize_piece.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/quantize_piece.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using DI = D32;
using VI = V32;

// Beyond this every quotient saturates, whatever the zero point; up to it, rounding and the sum are exact.
constexpr float kBeyond = 1 << 20;

// rne(x / scale) + zero, bounded; NaN is the zero point.
HWY_INLINE VI quantized(VF x, VF scale, VI zero) {
  const DF d;
  VF q = rounded_quotient(x, scale);
  q = hn::IfThenElseZero(hn::Eq(q, q), q);
  q = hn::Min(hn::Max(q, hn::Set(d, -kBeyond)), hn::Set(d, kBeyond));
  return hn::Add(nearest(q), zero);
}

// Quotients by the reciprocal, bounded by kBeyondBytes: within 2^-13 of x / scale where neither it nor the
// scale is extreme, so that both round alike unless a half is that near.
constexpr float kBeyondBytes = 512;
constexpr float kNearHalf = 0.5f - 0x1p-12f;
inline bool has_reciprocal(float scale) {
  const float size = scale < 0 ? -scale : scale;
  return size >= 0x1p-100f && size <= 0x1p100f;
}
// rne of such a quotient; *distance: from it to the quotient.
HWY_INLINE VI rounded(VF x, VF reciprocal, VF* distance) {
  const DF d;
  VF q = hn::Mul(x, reciprocal);
  q = hn::IfThenElseZero(hn::Eq(q, q), q);
  q = hn::Min(hn::Max(q, hn::Set(d, -kBeyondBytes)), hn::Set(d, kBeyondBytes));
  const VI integer = nearest(q);
  *distance = hn::Abs(hn::Sub(q, hn::ConvertTo(d, integer)));
  return integer;
}

HWY_INLINE VF floats(const float* p) { return hn::LoadU(DF(), p); }
HWY_INLINE VF floats(const int32_t* p) { return hn::ConvertTo(DF(), hn::LoadU(DI(), p)); }
HWY_INLINE VF floats(const float* p, size_t n) { return hn::LoadN(DF(), p, n); }
HWY_INLINE VF floats(const int32_t* p, size_t n) { return hn::ConvertTo(DF(), hn::LoadN(DI(), p, n)); }

#if HWY_ARCH_ARM_A64
// The bytes of sixteen such quotients; false where one may be too near a half. Conversion saturates and gives
// 0 for NaN, so nothing is bounded.
template <class X>
HWY_INLINE bool sixteen_rounded(const X* x, VF reciprocal, VF near, VI zero, int8_t* y) {
  const auto round = [&](const X* four, float32x4_t& distance) SINTER_SIMD_LAMBDA {
    const float32x4_t q = vmulq_f32(floats(four).raw, reciprocal.raw);
    const int32x4_t r = vcvtnq_s32_f32(q);
    distance = vabdq_f32(q, vcvtq_f32_s32(r));
    return r;
  };
  float32x4_t d0, d1, d2, d3;
  const int32x4_t r0 = round(x, d0), r1 = round(x + 4, d1), r2 = round(x + 8, d2), r3 = round(x + 12, d3);
  const float32x4_t most = vmaxq_f32(vmaxq_f32(d0, d1), vmaxq_f32(d2, d3));
  if (HWY_UNLIKELY(!(vmaxvq_f32(most) < vgetq_lane_f32(near.raw, 0)))) return false;
  const int16x8_t z = vqmovn_high_s32(vqmovn_s32(zero.raw), zero.raw);
  const int16x8_t a = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(r0), r1), z),
                  b = vqaddq_s16(vqmovn_high_s32(vqmovn_s32(r2), r3), z);
  vst1q_s8(y, vqmovn_high_s16(vqmovn_s16(a), b));
  return true;
}
#endif

// Four vectors narrow to one (bytes) or two; demotion saturates, once or twice alike.
template <class T>
HWY_INLINE void store4(VI a, VI b, VI c, VI e, T* y) {
  const hn::ScalableTag<T> d;
  if constexpr (sizeof(T) == 1) {
    const hn::ScalableTag<int16_t> h;
    hn::StoreU(hn::OrderedDemote2To(d, hn::OrderedDemote2To(h, a, b), hn::OrderedDemote2To(h, c, e)), d, y);
  } else {
    hn::StoreU(hn::OrderedDemote2To(d, a, b), d, y);
    hn::StoreU(hn::OrderedDemote2To(d, c, e), d, y + hn::Lanes(d));
  }
}

template <bool kEach, class X, class T>
HWY_INLINE void quantize_piece(const X* x, T* y, size_t n, const Steps& steps) {
  const DI di;
  const DF df;
  const hn::Rebind<T, DI> narrow;
  const size_t lanes = hn::Lanes(di);
  const VF one_scale = hn::Set(df, steps.scale);
  const VI one_zero = hn::Set(di, steps.zero);
  const auto at = [&](size_t i) SINTER_SIMD_LAMBDA {
    if constexpr (kEach)
      return quantized(floats(x + i), hn::LoadU(df, steps.scales + i), hn::LoadU(di, steps.zeros + i));
    else
      return quantized(floats(x + i), one_scale, one_zero);
  };
  size_t i = 0;
  if constexpr (!kEach && sizeof(T) == 1) {
    if (has_reciprocal(steps.scale)) {
      const VF reciprocal = hn::Set(df, 1 / steps.scale), near = hn::Set(df, kNearHalf);
      for (; i + 4 * lanes <= n; i += 4 * lanes) {
#if HWY_ARCH_ARM_A64
        if constexpr (std::is_same_v<T, int8_t>) {
          if (!sixteen_rounded(x + i, reciprocal, near, one_zero, y + i))
            store4(at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes), y + i);
          continue;
        }
#endif
        VF s, t, u, v;
        const VI a = rounded(floats(x + i), reciprocal, &s),
                 b = rounded(floats(x + i + lanes), reciprocal, &t),
                 c = rounded(floats(x + i + 2 * lanes), reciprocal, &u),
                 e = rounded(floats(x + i + 3 * lanes), reciprocal, &v);
        if (HWY_LIKELY(hn::AllTrue(df, hn::Lt(hn::Max(hn::Max(s, t), hn::Max(u, v)), near))))
          store4(hn::Add(a, one_zero), hn::Add(b, one_zero), hn::Add(c, one_zero), hn::Add(e, one_zero),
                 y + i);
        else
          store4(at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes), y + i);
      }
    }
  }
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    store4(at(i), at(i + lanes), at(i + 2 * lanes), at(i + 3 * lanes), y + i);
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::DemoteTo(narrow, at(i)), narrow, y + i);
  if (i == n) return;
  const size_t rest = n - i;
  VF scale = one_scale;
  VI zero = one_zero;
  if constexpr (kEach)
    scale = hn::LoadN(df, steps.scales + i, rest), zero = hn::LoadN(di, steps.zeros + i, rest);
  hn::StoreN(hn::DemoteTo(narrow, quantized(floats(x + i, rest), scale, zero)), narrow, y + i, rest);
}

HWY_INLINE VI integers(const int32_t* p) { return hn::LoadU(DI(), p); }
HWY_INLINE VI integers(const int32_t* p, size_t n) { return hn::LoadN(DI(), p, n); }
template <class T>
HWY_INLINE VI integers(const T* p) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<T, DI>(), p));
}
template <class T>
HWY_INLINE VI integers(const T* p, size_t n) {
  return hn::PromoteTo(DI(), hn::LoadN(hn::Rebind<T, DI>(), p, n));
}

template <bool kEach, class T>
HWY_INLINE void dequantize_piece(const T* x, float* y, size_t n, const Steps& steps) {
  const DI di;
  const DF df;
  const size_t lanes = hn::Lanes(di);
  const VF one_scale = hn::Set(df, steps.scale);
  const VI one_zero = hn::Set(di, steps.zero);
  const auto product = [](VI v, VF scale, VI zero) SINTER_SIMD_LAMBDA {
    return hn::Mul(hn::ConvertTo(DF(), hn::Sub(v, zero)), scale);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if constexpr (kEach)
      hn::StoreU(product(integers(x + i), hn::LoadU(df, steps.scales + i), hn::LoadU(di, steps.zeros + i)),
                 df, y + i);
    else
      hn::StoreU(product(integers(x + i), one_scale, one_zero), df, y + i);
  }
  if (i == n) return;
  const size_t rest = n - i;
  VF scale = one_scale;
  VI zero = one_zero;
  if constexpr (kEach)
    scale = hn::LoadN(df, steps.scales + i, rest), zero = hn::LoadN(di, steps.zeros + i, rest);
  hn::StoreN(product(integers(x + i, rest), scale, zero), df, y + i, rest);
}

void widen_range(const float* x, size_t n, float* low, float* high) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  VF low0 = hn::Set(d, *low), high0 = hn::Set(d, *high), low1 = low0, high1 = high0;
  const auto widen = [](VF v, VF& least, VF& most) SINTER_SIMD_LAMBDA {
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  };
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    widen(hn::LoadU(d, x + i), low0, high0);
    widen(hn::LoadU(d, x + i + lanes), low1, high1);
  }
  for (; i < n; i += lanes) widen(hn::LoadN(d, x + i, n - i < lanes ? n - i : lanes), low0, high0);
  *low = hn::ReduceMin(d, hn::Min(low0, low1));
  *high = hn::ReduceMax(d, hn::Max(high0, high1));
}

template <class X>
void quantize_as(const X* x, DType to, void* y, size_t n, const Steps& steps) {
  for_quantized(to, y, [&](auto* typed) HWY_ATTR {
    if (steps.scales != nullptr)
      quantize_piece<true>(x, typed, n, steps);
    else
      quantize_piece<false>(x, typed, n, steps);
  });
}

// One piece; `x` and `y` have the given types.
void run_piece(DType from, DType to, const void* x, void* y, size_t n, const Steps& steps) {
  if (to != DType::kFloat32)
    return from == DType::kFloat32 ? quantize_as(static_cast<const float*>(x), to, y, n, steps)
                                   : quantize_as(static_cast<const int32_t*>(x), to, y, n, steps);
  const auto dequantize = [&](const auto* typed) HWY_ATTR {
    if (steps.scales != nullptr)
      dequantize_piece<true>(typed, static_cast<float*>(y), n, steps);
    else
      dequantize_piece<false>(typed, static_cast<float*>(y), n, steps);
  };
  if (from == DType::kInt32) return dequantize(static_cast<const int32_t*>(x));
  for_quantized(from, x, dequantize);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(run_piece);
HWY_EXPORT(widen_range);

ConvertPiece* convert_piece() { return HWY_DYNAMIC_POINTER(run_piece); }
WidenRange* range_widener() { return HWY_DYNAMIC_POINTER(widen_range); }

}  // namespace sinter::simd
#endif  // HWY_ONCE
