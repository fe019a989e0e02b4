// The results of QDepthwiseConv: the sums of four pixels are scaled, rounded, narrowed and stored.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_STORE_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_STORE_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_STORE_INL_H_
#endif

#include <cmath>
#include <cstring>

#include "platforms/simd/int8/depthwise_input-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The vectors of channels whose sums are computed together, at most 16 channels.
constexpr int kVectors = hn::MaxLanes(D32()) >= 16 ? 1 : 2;
constexpr int64_t kTogether = kVectors * static_cast<int64_t>(hn::MaxLanes(D32()));

#if SINTER_Q_HALVES
// Converts between the order of channels in a group and that of the result.
template <class V>
HWY_INLINE void reorder(V& a, V& b) {
  const hn::DFromV<V> d;
  const V low = hn::ConcatLowerLower(d, b, a);
  b = hn::ConcatUpperUpper(d, b, a), a = low;
}
#else
template <class V>
HWY_INLINE void reorder(V&, V&) {}
#endif

// Returns whether the channel's scaled sums of `taps` products are small, whatever the input.
HWY_INLINE bool small_sums(int32_t bias, float multiplier, int64_t taps) {
  return HWY_ARCH_ARM_A64 ? scaled_sum_fits(bias, multiplier, taps) : std::fabs(multiplier) < 1.0f;
}

// The end of results of int8. With kSmall, scaled sums are int32, or int16 on 64-bit ARM, where that takes
// fewer instructions.
template <bool kSmall>
struct EndBytes {
  using Type = int8_t;
  VF m0, m1, low, high;
  V16 zero;
  V8 least, most;
  int64_t channels = 0;

  HWY_INLINE explicit EndBytes(const ProductResult& r)
      : m0(hn::Zero(DF())),
        m1(m0),
        low(hn::Set(DF(), r.low)),
        high(hn::Set(DF(), r.high)),
        zero(hn::Set(D16(), static_cast<int16_t>(r.zero))),
        least(hn::Set(D8(), lowest(r))),
        most(hn::Set(D8(), highest(r))) {}

  HWY_INLINE void begin(const float* multipliers, int64_t count) {
    m0 = hn::LoadU(DF(), multipliers), m1 = hn::LoadU(DF(), multipliers + kTogether - hn::Lanes(DF()));
    if constexpr (kVectors == 2) reorder(m0, m1);
    channels = std::min(count, kTogether);
  }

  template <int kCount>
  HWY_INLINE void pixels(V32 s00, V32 s01, V32 s10, V32 s11, V32 s20, V32 s21, V32 s30, V32 s31, int64_t rest,
                         int64_t next, int8_t* y) const {
    if constexpr (kVectors == 1) {
      store(bytes(rounded(s00, m0), rounded(s10, m0), rounded(s20, m0), rounded(s30, m0)), rest, next, y);
    } else {
      store(bytes(rounded(s00, m0), rounded(s01, m1), rounded(s10, m0), rounded(s11, m1)), rest, next, y);
      if constexpr (kCount == 4)
        store(bytes(rounded(s20, m0), rounded(s21, m1), rounded(s30, m0), rounded(s31, m1)), rest - 2, next,
              y + 2 * next);
    }
  }

 private:
  // NaN gives the lower bound.
  HWY_INLINE V32 rounded(V32 sum, VF multiplier) const {
    const VF v = hn::Mul(hn::ConvertTo(DF(), sum), multiplier);
#if HWY_ARCH_X86 || HWY_ARCH_ARM_A64
    return nearest(kSmall ? v : hn::Min(number_at_least(v, low), high));
#else
    // The number is 1.5 * 2^23: the last bits of the sum are the rounded number.
    const VF bounded = hn::Min(number_at_least(v, low), high);
    return hn::Sub(hn::BitCast(D32(), hn::Add(bounded, hn::Set(DF(), 12582912.0f))),
                   hn::Set(D32(), 0x4b400000));
#endif
  }
  HWY_INLINE V16 words(V32 a, V32 b) const {
    if constexpr (kSmall && HWY_ARCH_ARM_A64)
      return hn::ConcatEven(D16(), hn::BitCast(D16(), b), hn::BitCast(D16(), a));
    else
      return hn::ReorderDemote2To(D16(), a, b);
  }
  HWY_INLINE V8 bytes(V32 a, V32 b, V32 c, V32 e) const {
    const V16 first = hn::SaturatedAdd(words(a, b), zero), second = hn::SaturatedAdd(words(c, e), zero);
    return hn::Min(hn::Max(hn::ReorderDemote2To(D8(), first, second), least), most);
  }
  HWY_INLINE void store(V8 v, int64_t rest, int64_t next, int8_t* y) const {
#if SINTER_Q_HALVES
    // Halves of two pixels alternate.
    v = V8{_mm256_permute4x64_epi64(v.raw, 0xD8)};
#else
    v = in_order(v);
#endif
    if (HWY_LIKELY(channels == kTogether)) {
      if constexpr (kVectors == 2) {
        const hn::Half<D8> half;
        hn::StoreU(hn::LowerHalf(half, v), half, y);
        if (rest > 1) hn::StoreU(hn::UpperHalf(half, v), half, y + next);
      } else {
        const hn::FixedTag<int8_t, 16> part;
        hn::StoreU(hn::ExtractBlock<0>(v), part, y);
        if (rest > 1) hn::StoreU(hn::ExtractBlock<1>(v), part, y + next);
        if (rest > 2) hn::StoreU(hn::ExtractBlock<2>(v), part, y + 2 * next);
        if (rest > 3) hn::StoreU(hn::ExtractBlock<3>(v), part, y + 3 * next);
      }
      return;
    }
    HWY_ALIGN int8_t part[hn::MaxLanes(D8())];
    hn::Store(v, D8(), part);
    const int64_t count = std::min<int64_t>(rest, 4 / kVectors);
    for (int64_t i = 0; i < count; ++i)
      copy_part(y + i * next, part + i * kTogether, static_cast<size_t>(channels));
  }
  // Copies fewer than 16 bytes.
  static HWY_INLINE void copy_part(int8_t* to, const int8_t* from, size_t n) {
    if (n >= 8) return void((std::memcpy(to, from, 8), std::memcpy(to + n - 8, from + n - 8, 8)));
    if (n >= 4) return void((std::memcpy(to, from, 4), std::memcpy(to + n - 4, from + n - 4, 4)));
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
  }
};

// The end of results of other types.
template <class T>
struct EndOthers {
  using Type = T;
  Finish<T> first, second;
  int64_t channels = 0;

  HWY_INLINE explicit EndOthers(const ProductResult& r) : first(r), second(r) {}

  HWY_INLINE void begin(const float* multipliers, int64_t count) {
    first.multiplier = hn::LoadU(DF(), multipliers);
    second.multiplier = hn::LoadU(DF(), multipliers + kTogether - hn::Lanes(DF()));
    channels = count;
  }

  template <int kCount>
  HWY_INLINE void pixels(V32 s00, V32 s01, V32 s10, V32 s11, V32 s20, V32 s21, V32 s30, V32 s31, int64_t rest,
                         int64_t next, T* y) const {
    pixel(s00, s01, y);
    if (rest > 1) pixel(s10, s11, y + next);
    if constexpr (kCount == 4) {
      if (rest > 2) pixel(s20, s21, y + 2 * next);
      if (rest > 3) pixel(s30, s31, y + 3 * next);
    }
  }

 private:
  HWY_INLINE void pixel(V32 a, V32 b, T* y) const {
    const hn::Rebind<T, D32> to;
    const auto lanes = static_cast<int64_t>(hn::Lanes(to));
    if constexpr (kVectors == 2) reorder(a, b);
    hn::StoreN(first(a), to, y, static_cast<size_t>(std::min(channels, lanes)));
    if (kVectors == 2 && channels > lanes)
      hn::StoreN(second(b), to, y + lanes, static_cast<size_t>(std::min(channels - lanes, lanes)));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // SINTER_PLATFORMS_SIMD_INT8_DEPTHWISE_STORE_INL_H_
