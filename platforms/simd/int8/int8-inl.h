// Vectors of int8 as int16 and int32, and back to int8 as integer kernels round (docs/numerics.md).
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_INT8_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_INT8_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_INT8_INL_H_
#endif

#include <array>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::ScalableTag<int8_t>;
using D16 = hn::ScalableTag<int16_t>;
using D32 = hn::ScalableTag<int32_t>;
using DF = hn::ScalableTag<float>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;

// Loads as many int8 as there are lanes of the wider type.
HWY_INLINE V16 load16(const int8_t* p) {
  return hn::PromoteTo(D16(), hn::LoadU(hn::Rebind<int8_t, D16>(), p));
}
HWY_INLINE V32 load32(const int8_t* p) {
  return hn::PromoteTo(D32(), hn::LoadU(hn::Rebind<int8_t, D32>(), p));
}

// Rounds numbers below 2^31 half to even; on x86, those below -2^31 and NaN give the lowest int32.
HWY_INLINE V32 nearest(VF v) {
#if HWY_ARCH_X86
  return hn::NearestIntInRange(D32(), v);  // NearestInt handles numbers from 2^31 on as well
#else
  return hn::NearestInt(v);
#endif
}

// Returns x / y, rounded correctly: NEON of 32-bit ARM has no division, and Highway's is approximate there.
HWY_INLINE VF rounded_quotient(VF x, VF y) {
#if HWY_ARCH_ARM_V7
  HWY_ALIGN float dividends[4], divisors[4];
  hn::Store(x, DF(), dividends);
  hn::Store(y, DF(), divisors);
  for (int i = 0; i < 4; ++i) dividends[i] /= divisors[i];
  return hn::Load(DF(), dividends);
#else
  return hn::Div(x, y);
#endif
}

// Returns the larger one; `low` where v is NaN.
HWY_INLINE VF number_at_least(VF v, VF low) {
#if HWY_ARCH_X86
  return hn::Max(v, low);  // gives the second operand if one is NaN
#elif HWY_ARCH_ARM_A64
  return VF(vmaxnmq_f32(v.raw, low.raw));  // gives the operand that is not NaN
#else
  return hn::IfThenElse(hn::Gt(v, low), v, low);
#endif
}

#if HWY_TARGET == HWY_NEON  // with dot products of bytes (isa/config.h)
// Each product has four bytes.
HWY_INLINE V32 add_dots(V8 a, V8 b, V32 sum) {
  asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
      : "+w"(sum.raw)
      : "w"(a.raw), "w"(b.raw));
  return sum;
}
#endif

// Returns sum + x * w, of pairs of neighbouring lanes.
template <class Pairs, class Sums>
HWY_INLINE Sums add_pairs(Pairs x, Pairs w, Sums sum) {
  const hn::DFromV<Sums> d;
#if HWY_ARCH_X86
  Sums none = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, x, w, sum, none);  // one instruction if there are dot products
#else
  return hn::Add(sum, hn::WidenMulPairwiseAdd(d, x, w));
#endif
}
// Multiplies all lanes of w by the same pair.
HWY_INLINE V32 add_pairs(const int16_t* x, V16 w, V32 sum) {
  int32_t pair;
  std::memcpy(&pair, x, sizeof(pair));
  return add_pairs(hn::BitCast(D16(), hn::Set(D32(), pair)), w, sum);
}

// Returns four vectors, which ReorderDemote2To has narrowed to one within blocks of 128 bits, in their order.
HWY_INLINE V8 in_order(V8 v) {
  constexpr int kBlocks = static_cast<int>(hn::MaxLanes(D8()) / 16);
  if constexpr (kBlocks == 1) {
    return v;
  } else {
    HWY_ALIGN static constexpr auto kOrder = [] {
      std::array<int32_t, 4 * kBlocks> order{};
      for (int i = 0; i < 4 * kBlocks; ++i) order[i] = i % kBlocks * 4 + i / kBlocks;
      return order;
    }();
    const D32 d;
    return hn::BitCast(D8(), hn::TableLookupLanes(hn::BitCast(d, v), hn::SetTableIndices(d, kOrder.data())));
  }
}

// The result's zero point and bounds. Its numbers are rounded integers.
struct Result {
  V16 zero;
  V8 min, max;

  HWY_INLINE explicit Result(const Int8Range& r)
      : zero(hn::Set(D16(), static_cast<int16_t>(r.zero))),
        min(hn::Set(D8(), static_cast<int8_t>(r.min))),
        max(hn::Set(D8(), static_cast<int8_t>(r.max))) {}

  // Earlier saturation is the same, because the bounds are int8.
  HWY_INLINE V8 bytes(V16 a, V16 b) const {
    const V8 v = hn::OrderedDemote2To(D8(), hn::SaturatedAdd(a, zero), hn::SaturatedAdd(b, zero));
    return hn::Min(hn::Max(v, min), max);
  }
  HWY_INLINE V8 bytes(V32 a, V32 b, V32 c, V32 d) const {
    const V8 v = hn::ReorderDemote2To(D8(), hn::SaturatedAdd(hn::ReorderDemote2To(D16(), a, b), zero),
                                      hn::SaturatedAdd(hn::ReorderDemote2To(D16(), c, d), zero));
    return hn::Min(hn::Max(in_order(v), min), max);
  }
  // Numbers are within +-2^30.
  HWY_INLINE V8 bytes(VF a, VF b, VF c, VF d) const {
    return bytes(nearest(a), nearest(b), nearest(c), nearest(d));
  }
};

// Interleaving int16 vectors and narrowing the two halves of int32 results both stay within blocks of 128
// bits on every target that is compiled, so that this is the inverse of the two interleavings.
HWY_INLINE V16 rejoin(V32 lower, V32 upper) { return hn::ReorderDemote2To(D16(), lower, upper); }

// Scales, bounds, rounds and narrows the sums of a product.
template <class T>
struct Finish {
  VF multiplier, low, high;
  V32 zero;

  HWY_INLINE explicit Finish(const ProductResult& r)
      : multiplier(hn::Zero(DF())),
        low(hn::Set(DF(), r.low)),
        high(hn::Set(DF(), r.high)),
        // This subtracts the bits of the number that rounds.
        zero(hn::Set(D32(), r.zero - 0x4b400000)) {}

  HWY_INLINE hn::Vec<hn::Rebind<T, D32>> operator()(V32 sum) const {
    if constexpr (hwy::IsFloat<T>()) {
      return scaled(sum);
    } else {
      using U = hwy::MakeUnsigned<T>;
      const auto bits = hn::BitCast(hn::RebindToUnsigned<D32>(), rounded(sum));
      return hn::BitCast(hn::Rebind<T, D32>(), hn::TruncateTo(hn::Rebind<U, D32>(), bits));
    }
  }

 private:
  HWY_INLINE VF scaled(V32 sum) const { return hn::Mul(hn::ConvertTo(DF(), sum), multiplier); }
  // Returns integers. NaN gives the lower bound.
  HWY_INLINE V32 rounded(V32 sum) const {
    VF v = number_at_least(scaled(sum), low);
    // The number is 1.5 * 2^23: the last bits of the sum are the rounded number.
    v = hn::Add(hn::Min(v, high), hn::Set(DF(), 12582912.0f));
    return hn::Add(hn::BitCast(D32(), v), zero);
  }
};

// Calls whole(i) for every whole vector of n bytes, then rest(i, count).
template <class Whole, class Rest>
HWY_INLINE void for_each_vector(size_t n, Whole whole, Rest rest) {
  const size_t lanes = hn::Lanes(D8());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) whole(i);
  if (i < n) rest(i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // SINTER_PLATFORMS_SIMD_INT8_INT8_INL_H_
