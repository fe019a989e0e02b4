// The common parts of the products of a block of rows by a panel: rows one after the other, and their end.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_GEMM_TILE_INL_H_
#endif

#include <algorithm>

#include "platforms/simd/int8/int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

HWY_INLINE int64_t panel_columns() { return static_cast<int64_t>(2 * hn::Lanes(D32())); }

// Stores sums: row r, column c to sums[r * 2 * lanes + c].
struct KeepSums {
  static constexpr bool kTogether = false;
  int32_t* sums;

  template <int kVectors>
  HWY_INLINE void one(int64_t r, V32 c0, V32 c1) const {
    const D32 d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::StoreU(c0, d, sums + r * 2 * lanes);
    if constexpr (kVectors == 2) hn::StoreU(c1, d, sums + (r * 2 + 1) * lanes);
  }
};

#undef SINTER_EACH_ROW
#define SINTER_EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)

// Ends the sums of kRows rows; kVectors is 1 where the panel's columns fit one vector.
template <int kRows, int kVectors, class End>
HWY_INLINE void end_block(const End& end, V32 c00, V32 c01, V32 c10, V32 c11, V32 c20, V32 c21, V32 c30,
                          V32 c31, V32 c40, V32 c41, V32 c50, V32 c51, V32 c60, V32 c61, V32 c70, V32 c71) {
  if constexpr (End::kTogether) {
    // Takes four vectors at a time, of two rows or of four.
#define SINTER_TWO(q, r) \
  if constexpr (kVectors == 2 && kRows > q) end.two(q, kRows > r, c##q##0, c##q##1, c##r##0, c##r##1);
    SINTER_TWO(0, 1)
    SINTER_TWO(2, 3)
    SINTER_TWO(4, 5)
    SINTER_TWO(6, 7)
#undef SINTER_TWO
    if constexpr (kVectors == 1) {
      end.four(0, std::min(kRows, 4), c00, c10, c20, c30);
      if constexpr (kRows > 4) end.four(4, kRows - 4, c40, c50, c60, c70);
    }
  } else {
#define SINTER_ROW(r) \
  if constexpr (kRows > r) end.template one<kVectors>(r, c##r##0, c##r##1);
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
