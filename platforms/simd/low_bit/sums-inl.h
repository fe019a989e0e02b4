// Integer sums of a segment (segments.h): rows of bytes of x times the columns of a panel, two vectors.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_LOW_BIT_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_LOW_BIT_SUMS_INL_H_
#undef SINTER_PLATFORMS_SIMD_LOW_BIT_SUMS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_LOW_BIT_SUMS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "platforms/simd/low_bit/dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The rows of a block: registers hold the sums of as many.
#if HWY_TARGET == HWY_NEON
constexpr int kMostRows = 8;
#elif HWY_ARCH_ARM_V7
constexpr int kMostRows = 2;
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr int kMostRows = 6;
#else
constexpr int kMostRows = 4;
#endif

#undef SINTER_EACH_ROW
#define SINTER_EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)

enum class Dots {
  kBytes,     // dot products of bytes, with weights that are unsigned on x86, else signed
  kSigned,    // products of signed weights of 8 bits, without dot products of bytes
  kMatrices,  // products of pairs of rows and columns (i8mm)
};

HWY_INLINE V8 four_at(const float* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  return hn::BitCast(D8(), hn::Set(I(), four));
}
HWY_INLINE V8 bytes_at(const float* w) { return hn::BitCast(D8(), hn::LoadU(F(), w)); }

#if SINTER_BYTE_PAIRS && HWY_ARCH_ARM_A64
// The sums of the pairs of the lower and of the upper half of the columns; two for each column.
struct PairSums {
  int32x4_t low{}, high{};
};
HWY_INLINE PairSums add_pairs_apart(Products p, PairSums sums) {
  return {vpadalq_s16(sums.low, p.low), vpadalq_s16(sums.high, p.high)};
}
HWY_INLINE VI add_pair_sums(PairSums of, VI sum) {
  return VI(vaddq_s32(sum.raw, vpaddq_s32(of.low, of.high)));
}
#endif

#if HWY_TARGET == HWY_NEON
// Returns sum + four bytes of w times the four bytes `lane` of x, in each lane.
template <int lane>
HWY_INLINE VI add_lane(V8 w, V8 x, VI sum) {
  asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.4b[%3]"
      : "+w"(sum.raw)
      : "w"(w.raw), "w"(x.raw), "n"(lane));
  return sum;
}
// Returns sum + two rows of x, eight bytes of each, times two columns of w.
HWY_INLINE VI add_matrices(V8 x, V8 w, VI sum) {
  asm(".arch armv8.2-a+crypto+dotprod+i8mm\n\tsmmla %0.4s, %1.16b, %2.16b"
      : "+w"(sum.raw)
      : "w"(x.raw), "w"(w.raw));
  return sum;
}
template <class T>
HWY_INLINE T lower_halves(T a, T b) {
  const hn::Repartition<int64_t, hn::DFromV<T>> d;
  return hn::BitCast(hn::DFromV<T>(), hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}
template <class T>
HWY_INLINE T upper_halves(T a, T b) {
  const hn::Repartition<int64_t, hn::DFromV<T>> d;
  return hn::BitCast(hn::DFromV<T>(), hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}
#endif

// The places of each row's bytes of x, which are undefined beyond the last row.
struct RowBytes {
  const float *x0, *x1, *x2, *x3, *x4, *x5, *x6, *x7;
};
// The sums of each row, for both vectors of columns.
struct RowSums {
  VI c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51, c60, c61, c70, c71;

  HWY_INLINE RowSums() {}  // an implicit one would not be compiled for the instruction set
};

// Adds the products of `fours` (a multiple of 4) fours of bytes of kRows rows. Weights of `bits` move on.
template <int kRows, Dots kDots>
HWY_INLINE void add_products(const RowBytes& x, int64_t fours, [[maybe_unused]] int bits, const float*& w,
                             RowSums& sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
#if SINTER_BYTE_PAIRS
  constexpr bool kSigned = kDots == Dots::kSigned;
#if HWY_ARCH_ARM_A64
  if constexpr (kSigned) {  // two products fit: 2 * 128 * 127
#define SINTER_ROW(r) [[maybe_unused]] PairSums q##r##0, q##r##1;
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    for (int64_t four = 0; four < fours; four += 2, w += 4 * lanes) {
      const V8 a0 = bytes_at(w), a1 = bytes_at(w + lanes), b0 = bytes_at(w + 2 * lanes),
               b1 = bytes_at(w + 3 * lanes);
#define SINTER_ROW(r)                                                                                      \
  if constexpr (kRows > r) {                                                                               \
    const float32x2_t v = vld1_f32(x.x##r + four);                                                         \
    const V8 a(vreinterpretq_s8_f32(vdupq_lane_f32(v, 0))), b(vreinterpretq_s8_f32(vdupq_lane_f32(v, 1))); \
    q##r##0 = add_pairs_apart(add_products_of<true>(b0, b, products_of<true>(a0, a)), q##r##0);            \
    q##r##1 = add_pairs_apart(add_products_of<true>(b1, b, products_of<true>(a1, a)), q##r##1);            \
  }
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    }
#define SINTER_ROW(r)                                    \
  if constexpr (kRows > r) {                             \
    sums.c##r##0 = add_pair_sums(q##r##0, sums.c##r##0); \
    sums.c##r##1 = add_pair_sums(q##r##1, sums.c##r##1); \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    return;
  }
#endif
  const int64_t fit = kSigned ? 1 : pairs_that_fit(bits);
  for (int64_t four = 0; four < fours;) {
    const int64_t end = std::min(four + fit, fours);
    V8 w0 = bytes_at(w), w1 = bytes_at(w + lanes);
#define SINTER_ROW(r)                         \
  [[maybe_unused]] Products p##r##0, p##r##1; \
  if constexpr (kRows > r) {                  \
    const V8 v = four_at(x.x##r + four);      \
    p##r##0 = products_of<kSigned>(w0, v);    \
    p##r##1 = products_of<kSigned>(w1, v);    \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    for (++four, w += 2 * lanes; four < end; ++four, w += 2 * lanes) {
      w0 = bytes_at(w), w1 = bytes_at(w + lanes);
#define SINTER_ROW(r)                                   \
  if constexpr (kRows > r) {                            \
    const V8 v = four_at(x.x##r + four);                \
    p##r##0 = add_products_of<kSigned>(w0, v, p##r##0); \
    p##r##1 = add_products_of<kSigned>(w1, v, p##r##1); \
  }
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    }
#define SINTER_ROW(r)                                   \
  if constexpr (kRows > r) {                            \
    sums.c##r##0 = add_pairs_of(p##r##0, sums.c##r##0); \
    sums.c##r##1 = add_pairs_of(p##r##1, sums.c##r##1); \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
#elif HWY_TARGET == HWY_NEON
  if constexpr (kDots == Dots::kMatrices) {
    // The sums of a pair of rows: of each pair of columns, both of the first row, then of the second.
#define SINTER_PAIR(q, r)  \
  if constexpr (kRows > r) \
    sums.c##q##0 = sums.c##q##1 = sums.c##r##0 = sums.c##r##1 = lower_halves(sums.c##q##0, sums.c##r##0);
#define SINTER_PAIRS SINTER_PAIR(0, 1) SINTER_PAIR(2, 3) SINTER_PAIR(4, 5) SINTER_PAIR(6, 7)
    SINTER_PAIRS
#undef SINTER_PAIR
    for (int64_t four = 0; four < fours; four += 4) {
#define SINTER_PAIR(q, r)                                              \
  [[maybe_unused]] V8 x##q##_0, x##q##_1;                              \
  if constexpr (kRows > r) {                                           \
    const V8 a = bytes_at(x.x##q + four), b = bytes_at(x.x##r + four); \
    x##q##_0 = lower_halves(a, b), x##q##_1 = upper_halves(a, b);      \
  }
      SINTER_PAIRS
#undef SINTER_PAIR
#define SINTER_PAIR_PART(q, r, part)                              \
  if constexpr (kRows > r) {                                      \
    sums.c##q##0 = add_matrices(x##q##_##part, w0, sums.c##q##0); \
    sums.c##q##1 = add_matrices(x##q##_##part, w1, sums.c##q##1); \
    sums.c##r##0 = add_matrices(x##q##_##part, w2, sums.c##r##0); \
    sums.c##r##1 = add_matrices(x##q##_##part, w3, sums.c##r##1); \
  }
#define SINTER_PART(part)                                     \
  w0 = bytes_at(w), w1 = bytes_at(w + lanes);                 \
  w2 = bytes_at(w + 2 * lanes), w3 = bytes_at(w + 3 * lanes); \
  SINTER_PAIR_PART(0, 1, part);                               \
  SINTER_PAIR_PART(2, 3, part);                               \
  SINTER_PAIR_PART(4, 5, part);                               \
  SINTER_PAIR_PART(6, 7, part);                               \
  w += 4 * lanes;
      V8 w0, w1, w2, w3;
      SINTER_PART(0);
      SINTER_PART(1);
#undef SINTER_PART
#undef SINTER_PAIR_PART
    }
#define SINTER_PAIR(q, r)                                                            \
  if constexpr (kRows > r) {                                                         \
    const VI a = sums.c##q##0, b = sums.c##q##1, e = sums.c##r##0, f = sums.c##r##1; \
    sums.c##q##0 = lower_halves(a, b), sums.c##q##1 = lower_halves(e, f);            \
    sums.c##r##0 = upper_halves(a, b), sums.c##r##1 = upper_halves(e, f);            \
  }
    SINTER_PAIRS
#undef SINTER_PAIR
#undef SINTER_PAIRS
  } else {
    for (int64_t four = 0; four < fours; four += 4) {
#define SINTER_ROW(r)       \
  [[maybe_unused]] V8 q##r; \
  if constexpr (kRows > r) q##r = bytes_at(x.x##r + four);
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
#define SINTER_ROW_LANE(r, lane)                           \
  if constexpr (kRows > r) {                               \
    sums.c##r##0 = add_lane<lane>(w0, q##r, sums.c##r##0); \
    sums.c##r##1 = add_lane<lane>(w1, q##r, sums.c##r##1); \
  }
#define SINTER_LANE(lane)                     \
  w0 = bytes_at(w), w1 = bytes_at(w + lanes); \
  SINTER_ROW_LANE(0, lane);                   \
  SINTER_ROW_LANE(1, lane);                   \
  SINTER_ROW_LANE(2, lane);                   \
  SINTER_ROW_LANE(3, lane);                   \
  SINTER_ROW_LANE(4, lane);                   \
  SINTER_ROW_LANE(5, lane);                   \
  SINTER_ROW_LANE(6, lane);                   \
  SINTER_ROW_LANE(7, lane);                   \
  w += 2 * lanes;
      V8 w0, w1;
      SINTER_LANE(0);
      SINTER_LANE(1);
      SINTER_LANE(2);
      SINTER_LANE(3);
#undef SINTER_LANE
#undef SINTER_ROW_LANE
    }
  }
#else
  for (int64_t four = 0; four < fours; ++four, w += 2 * lanes) {
    const V8 w0 = bytes_at(w), w1 = bytes_at(w + lanes);
#define SINTER_ROW(r)                              \
  if constexpr (kRows > r) {                       \
    const V8 v = four_at(x.x##r + four);           \
    sums.c##r##0 = add_bytes(w0, v, sums.c##r##0); \
    sums.c##r##1 = add_bytes(w1, v, sums.c##r##1); \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
