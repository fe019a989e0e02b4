// The end of an int8 product on x86: sums are scaled, rounded, narrowed and stored while they are in
// registers.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_STORE_X86_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_STORE_X86_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_STORE_X86_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_STORE_X86_INL_H_
#endif

#include <type_traits>

#include "platforms/simd/int8/int8-inl.h"

#if HWY_ARCH_X86
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The end of one panel, whose weights have no zero points and whose multipliers are below 1.
struct StoreBytes {
  static constexpr bool kTogether = true;
  const float* multipliers;  // of the panel's columns
  int8_t* y;                 // its first column
  const int64_t* y_rows;
  int64_t valid;  // columns
  int16_t zero;
  int8_t low, high;

  // Returns whether every |sum| * |multiplier| of a panel stays below 2^31: sums do, if multipliers are below
  // 1. Multipliers beside the n columns are 0.
  static HWY_INLINE bool takes(const float* multipliers, int64_t) {
    const DF d;
    const VF one = hn::Set(d, 1.0f);
    return hn::AllFalse(d, hn::Or(hn::Ge(hn::Abs(hn::LoadU(d, multipliers)), one),
                                  hn::Ge(hn::Abs(hn::LoadU(d, multipliers + hn::Lanes(d))), one)));
  }

  // Stores a row's two vectors, and the next row's.
  HWY_INLINE void two(int64_t row, bool both, V32 a, V32 b, V32 c, V32 e) const {
    const hn::Half<D8> half;
    const auto width = static_cast<int64_t>(hn::Lanes(half));
    const VF m = hn::LoadU(DF(), multipliers), n = hn::LoadU(DF(), multipliers + hn::Lanes(DF()));
    const V8 v = bytes(rounded(a, m), rounded(b, n), rounded(c, m), rounded(e, n));
    if (HWY_UNLIKELY(valid != width)) return store_parts(v, row, both ? 2 : 1, width);
    int8_t* to = y + y_rows[row];
    if (!both) return hn::StoreU(hn::LowerHalf(half, v), half, to);
    if (y_rows[row + 1] - y_rows[row] == width) return hn::StoreU(v, D8(), to);
    hn::StoreU(hn::LowerHalf(half, v), half, to);
    hn::StoreU(hn::UpperHalf(half, v), half, y + y_rows[row + 1]);
  }
  // Stores one vector each of up to four rows.
  HWY_INLINE void four(int64_t row, int count, V32 a, V32 b, V32 c, V32 e) const {
    const auto width = static_cast<int64_t>(hn::Lanes(D32()));
    const VF m = hn::LoadU(DF(), multipliers);
    const V8 v = bytes(rounded(a, m), rounded(b, m), rounded(c, m), rounded(e, m));
    // Rows are `width` or more apart.
    if (count == 4 && valid == width && y_rows[row + 3] - y_rows[row] == 3 * width)
      return hn::StoreU(v, D8(), y + y_rows[row]);
    store_parts(v, row, count, width);
  }

 private:
  // NaN gives the lowest int32, which narrows to the lower bound.
  HWY_INLINE V32 rounded(V32 sum, VF multiplier) const {
    return nearest(hn::Mul(hn::ConvertTo(DF(), sum), multiplier));
  }
  HWY_INLINE V8 bytes(V32 a, V32 b, V32 c, V32 e) const {
    const V16 z = hn::Set(D16(), zero);
    const V8 v = hn::ReorderDemote2To(D8(), hn::SaturatedAdd(hn::ReorderDemote2To(D16(), a, b), z),
                                      hn::SaturatedAdd(hn::ReorderDemote2To(D16(), c, e), z));
    return hn::Min(hn::Max(in_order(v), hn::Set(D8(), low)), hn::Set(D8(), high));
  }
  HWY_INLINE void store_parts(V8 v, int64_t row, int count, int64_t width) const {
    HWY_ALIGN int8_t part[hn::MaxLanes(D8())];
    hn::Store(v, D8(), part);
    if (valid == width) {
      const hn::CappedTag<int8_t, hn::MaxLanes(D32())> d;
      for (int r = 0; r < count; ++r) hn::StoreU(hn::LoadU(d, part + r * width), d, y + y_rows[row + r]);
      return;
    }
    for (int r = 0; r < count; ++r)
      copy_part(y + y_rows[row + r], part + r * width, static_cast<size_t>(valid));
  }
  // Copies 1 to 32 bytes.
  static HWY_INLINE void copy_part(int8_t* to, const int8_t* from, size_t n) {
    const auto ends = [=](auto size) {
      std::memcpy(to, from, size());
      std::memcpy(to + n - size(), from + n - size(), size());
    };
    if (n >= 16) return ends(std::integral_constant<size_t, 16>());
    if (n >= 8) return ends(std::integral_constant<size_t, 8>());
    if (n >= 4) return ends(std::integral_constant<size_t, 4>());
    to[0] = from[0];
    if (n > 1) to[n - 1] = from[n - 1], to[n / 2] = from[n / 2];
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_X86

#endif  // per-target include guard
