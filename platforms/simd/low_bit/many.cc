// Products of many rounded rows of x with pieces of panels of bytes of weights: integer sums of a segment
// become float32 with the scales of both sides, segment by segment.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS

#include <cstring>

#include "platforms/simd/int8/int8.h"
#include "platforms/simd/low_bit/segments.h"
#include "platforms/simd/simd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/low_bit/many.cc"
#include "hwy/foreach_target.h"
// These come after it:
#include "platforms/simd/low_bit/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Computes rows `row` .. row + kRows - 1. Sums of the segments before are in y.
template <int kRows, Dots kDots>
HWY_INLINE void block(const LowBit& g, const LowBitSegments& segments, const BytePiece& piece,
                      const ByteProduct& product, int64_t row) {
  const F d;
  const I di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = segments.stride(), fours = segments.fours, count = piece.last - piece.first;
  const int64_t most = product.rows - 1;
  // Rows beyond the last repeat the last one.
#define SINTER_ROW(r)                                                                                 \
  [[maybe_unused]] const int64_t row##r = row + r < most ? row + r : most;                            \
  [[maybe_unused]] const float* x##r = product.x + row##r * stride + piece.first * segments.record(); \
  [[maybe_unused]] V s##r##0 = hn::Zero(d), s##r##1 = s##r##0;
  SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  float* y = product.y + piece.column;
  const int64_t left = g.columns - piece.column;
  const auto n0 = static_cast<size_t>(std::min(left, lanes)),
             n1 = static_cast<size_t>(std::clamp<int64_t>(left - lanes, 0, lanes));
  const bool whole = left >= 2 * lanes;
  if (piece.first > 0) {
#define SINTER_ROW(r)                                                                           \
  if constexpr (kRows > r) {                                                                    \
    const float* p = y + row##r * g.columns;                                                    \
    s##r##0 = whole ? hn::LoadU(d, p) : hn::LoadN(d, p, n0);                                    \
    s##r##1 = whole ? hn::LoadU(d, p + lanes) : n1 > 0 ? hn::LoadN(d, p + lanes, n1) : s##r##1; \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
  const float* w = piece.weights;
  const bool with_zeros = g.zeros != nullptr;
  for (int64_t s = 0; s < count; ++s) {
    const float *scales = w, *zeros = w + 2 * lanes;
    w = zeros + 2 * lanes;
    const auto row_numbers = [&](const float* x) SINTER_SIMD_LAMBDA { return x + fours; };
    RowSums sums;
#define SINTER_ROW(r)                                                              \
  if constexpr (kRows > r) {                                                       \
    int32_t start;                                                                 \
    std::memcpy(&start, row_numbers(x##r) + LowBitSegments::kStart, sizeof start); \
    sums.c##r##0 = sums.c##r##1 = hn::Set(di, start);                              \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    add_products<kRows, kDots>({x0, x1, x2, x3, x4, x5, x6, x7}, fours, g.format.bits, w, sums);
    const V scale0 = hn::LoadU(d, scales), scale1 = hn::LoadU(d, scales + lanes);
    if (with_zeros) {
      const V z0 = hn::LoadU(d, zeros), z1 = hn::LoadU(d, zeros + lanes);
#define SINTER_ROW(r)                                                                                        \
  if constexpr (kRows > r) {                                                                                 \
    const V sum = hn::Set(d, row_numbers(x##r)[LowBitSegments::kSum]),                                       \
            scale = hn::Set(d, row_numbers(x##r)[LowBitSegments::kScale]);                                   \
    s##r##0 =                                                                                                \
        hn::MulAdd(hn::NegMulAdd(z0, sum, hn::ConvertTo(d, sums.c##r##0)), hn::Mul(scale0, scale), s##r##0); \
    s##r##1 =                                                                                                \
        hn::MulAdd(hn::NegMulAdd(z1, sum, hn::ConvertTo(d, sums.c##r##1)), hn::Mul(scale1, scale), s##r##1); \
    x##r += segments.record();                                                                               \
  }
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    } else {
#define SINTER_ROW(r)                                                                      \
  if constexpr (kRows > r) {                                                               \
    const V scale = hn::Set(d, row_numbers(x##r)[LowBitSegments::kScale]);                 \
    s##r##0 = hn::MulAdd(hn::ConvertTo(d, sums.c##r##0), hn::Mul(scale0, scale), s##r##0); \
    s##r##1 = hn::MulAdd(hn::ConvertTo(d, sums.c##r##1), hn::Mul(scale1, scale), s##r##1); \
    x##r += segments.record();                                                             \
  }
      SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
    }
  }
  if (piece.last == segments.count) {
    const V low = hn::Set(d, product.min), high = hn::Set(d, product.max);
    V b0 = hn::Zero(d), b1 = b0;
    if (product.bias != nullptr) {
      const float* bias = product.bias + piece.column;
      b0 = hn::LoadN(d, bias, n0);
      if (n1 > 0) b1 = hn::LoadN(d, bias + lanes, n1);
    }
#define SINTER_ROW(r)                                 \
  if constexpr (kRows > r) {                          \
    s##r##0 = clamp(hn::Add(s##r##0, b0), low, high); \
    s##r##1 = clamp(hn::Add(s##r##1, b1), low, high); \
  }
    SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
  }
#define SINTER_ROW(r)                                               \
  if constexpr (kRows > r) {                                        \
    float* p = y + row##r * g.columns;                              \
    if (whole) {                                                    \
      hn::StoreU(s##r##0, d, p), hn::StoreU(s##r##1, d, p + lanes); \
    } else {                                                        \
      hn::StoreN(s##r##0, d, p, n0);                                \
      if (n1 > 0) hn::StoreN(s##r##1, d, p + lanes, n1);            \
    }                                                               \
  }
  SINTER_EACH_ROW(SINTER_ROW)
#undef SINTER_ROW
}

template <Dots kDots>
HWY_NOINLINE void blocks(const LowBit& g, const LowBitSegments& segments, const BytePiece& piece,
                         const ByteProduct& product) {
  int64_t row = 0;
  for (; product.rows - row > kMostRows / 2; row += kMostRows)
    block<kMostRows, kDots>(g, segments, piece, product, row);
  if (row < product.rows) block<kMostRows / 2, kDots>(g, segments, piece, product, row);
}

void multiply_piece(const LowBit& g, const LowBitSegments& segments, const BytePiece& piece,
                    const ByteProduct& product) {
#if SINTER_BYTE_PAIRS
  if (has_signed_bytes(g.format.bits)) return blocks<Dots::kSigned>(g, segments, piece, product);
#elif HWY_TARGET == HWY_NEON
  if (simd_has_i8mm()) return blocks<Dots::kMatrices>(g, segments, piece, product);
#endif
  blocks<Dots::kBytes>(g, segments, piece, product);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(multiply_piece);

void multiply_piece(const LowBit& g, const LowBitSegments& segments, const BytePiece& piece,
                    const ByteProduct& product) {
  HWY_DYNAMIC_DISPATCH(multiply_piece)(g, segments, piece, product);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
