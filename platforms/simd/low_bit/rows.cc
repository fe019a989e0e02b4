// Products of few rows of x with rows of weights of few bits.
//
// Integers stay unsigned: the zero point's part of a block is the sum of its x, which is known before any
// weight is read. Bytes of weights become floats in their places in words (codes-inl.h; the higher one of a
// pair of integers is 256 times as large, and its x as much smaller), or are multiplied as bytes with rounded
// x or, in columns-inl.h, with the bytes of fixed-point numbers.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS

#include <cmath>

#include "platforms/simd/int8/int8.h"
#include "platforms/simd/low_bit/groups.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/low_bit/rows.cc"
#include "hwy/foreach_target.h"
// These come after it:
#include "platforms/simd/low_bit/codes-inl.h"
#include "platforms/simd/low_bit/columns-inl.h"
#include "platforms/simd/low_bit/dots-inl.h"
#include "platforms/simd/low_bit/numbers-inl.h"
#include "platforms/simd/low_bit/one_row-inl.h"
#include "platforms/simd/low_bit/read_ahead-inl.h"
#include "platforms/simd/low_bit/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Four sums are computed at a time: one row of x with four rows of weights, or four with one.
#define SINTER_FOUR(of) of(0) of(1) of(2) of(3)

// Computes y of up to kRows (1 or 4) rows of x for columns first .. last - 1. Fewer than four are filled up
// with the last one.
template <class Codes, int kRows, bool kRounded, class Scale>
HWY_NOINLINE void products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows,
                           int64_t first, int64_t last, const float* bias, float min, float max, float* y,
                           int64_t y_stride) {
  const F d;
  constexpr int kBits = Codes::kBits;
  using Words = WeightWords<kBits>;
  constexpr int kVectors = Words::kVectors;
  constexpr int kColumns = 4 / kRows;
  static_assert(!kRounded || kColumns == 1);  // one row: column_products
  const LowBitGroups groups(g, static_cast<int64_t>(hn::Lanes(d)));
  // These are copies, because a compiler reads fields again after every store.
  const int64_t lanes = groups.lanes, count = groups.groups, numbers = groups.numbers, record = groups.record,
                chunks = groups.chunks, each = groups.scales;
  const int64_t chunk_words = kRounded ? kVectors * lanes : 4 * kVectors * lanes;  // those of x
  const int64_t step = groups.chunk, skip = groups.group - chunks * step;
  ReadAhead<kBits> ahead(g, kColumns, count);
  const auto lane_block = lane_blocks(groups, 0);
  const VI flip = flip_of(g, has_signed_bytes(kBits));  // if x is bytes
  const VI mask = Words::each_byte((1 << kBits) - 1);   // if x is bytes
  const bool with_zeros = g.zeros != nullptr;
  const float* begin = arranged + kArrangedHead;
  const int64_t r1 = rows > 1 ? stride : 0, r2 = rows > 2 ? 2 * stride : r1, r3 = rows > 3 ? 3 * stride : r2;
  RowNumbers<kColumns, Scale> of_blocks(g, groups);
  Codes codes(g);
  for (int64_t n = first; n < last; n += kColumns) {
    const int64_t n1 = n + 1 < last ? n + 1 : n, n2 = n + 2 < last ? n + 2 : n1,
                  n3 = n + 3 < last ? n + 3 : n2;
    Words w0(g, n), w1(g, n1), w2(g, n2), w3(g, n3);
    ahead.start(g, n);
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const float* x0 = begin;
    int64_t k = 0;
    for (int64_t group = 0; group < count;) {
      const int64_t end = of_blocks.read(n, n1, n2, n3, group);
      const Scale *scale0 = of_blocks.scales(0), *scale1 = of_blocks.scales(1), *scale2 = of_blocks.scales(2),
                  *scale3 = of_blocks.scales(3);
      const float *zero0 = of_blocks.zeros(0), *zero1 = of_blocks.zeros(1), *zero2 = of_blocks.zeros(2),
                  *zero3 = of_blocks.zeros(3);
      int64_t at = 0;  // in a block's numbers
      for (; group < end; ++group, at += each) {
        const float *x1 = kRows > 1 ? x0 + r1 : x0, *x2 = kRows > 1 ? x0 + r2 : x0,
                    *x3 = kRows > 1 ? x0 + r3 : x0;
        V a0, a1, a2, a3;
        if constexpr (kRounded) {
          VI q0, q1, q2, q3;
#define SINTER_START(i) q##i = hn::BitCast(I(), hn::LoadU(d, x##i + numbers));
          SINTER_FOUR(SINTER_START)
#undef SINTER_START
          int64_t from = 0;
          for (int64_t c = 0; c < chunks; ++c, from += chunk_words, k += step) {
            w0.load(k), w0.change_sign(flip);
            const WeightBytes<kBits> weights(w0, mask);
#define SINTER_ADD(i) q##i = weights.add_dots(XBytes<kVectors>(x##i + from, lanes), q##i);
            SINTER_FOUR(SINTER_ADD)
#undef SINTER_ADD
            ahead.template words<kColumns>();
          }
#define SINTER_END(i) a##i = hn::ConvertTo(d, q##i);
          SINTER_FOUR(SINTER_END)
#undef SINTER_END
        } else {
#define SINTER_START(i) a##i = hn::LoadU(d, x##i + numbers);
          SINTER_FOUR(SINTER_START)
#undef SINTER_START
          int64_t from = 0, left = g.depth - k < groups.group ? g.depth - k : groups.group;
          for (int64_t c = 0; c < chunks; ++c, from += chunk_words, k += step, left -= step) {
#define SINTER_LOAD(i) \
  if (i < kColumns) w##i.load(k);
            SINTER_FOUR(SINTER_LOAD)
#undef SINTER_LOAD
            ahead.template words<kColumns>();
            if (!Codes::kIntegers && HWY_UNLIKELY(left < step)) {
              // The words behind a block may be NaN, which its x, 0, does not cancel.
              const VI first = first_bytes(plane_bytes(kBits, left));
#define SINTER_CLEAR(i) \
  if (i < kColumns) w##i.low = hn::And(w##i.low, first);
              SINTER_FOUR(SINTER_CLEAR)
#undef SINTER_CLEAR
            }
#define SINTER_ORDER(i) \
  if (i < kColumns) w##i.low = codes.ordered(w##i.low);
            SINTER_FOUR(SINTER_ORDER)
#undef SINTER_ORDER
#define SINTER_VECTOR(j)                                                                      \
  if constexpr (kVectors > j) {                                                               \
    const int64_t p = from + 4 * j * lanes;                                                   \
    if constexpr (kColumns > 1) {                                                             \
      const V x_0 = hn::LoadU(d, x0 + p), x_1 = hn::LoadU(d, x0 + p + lanes),                 \
              x_2 = hn::LoadU(d, x0 + p + 2 * lanes), x_3 = hn::LoadU(d, x0 + p + 3 * lanes); \
      SINTER_FOUR(SINTER_COLUMN##j)                                                           \
    } else {                                                                                  \
      const FourFloats w = codes.floats(w0.template bytes<j>());                              \
      SINTER_FOUR(SINTER_ROW)                                                                 \
    }                                                                                         \
  }
#define SINTER_COLUMN(i, j)                                                                                  \
  {                                                                                                          \
    const FourFloats w = codes.floats(w##i.template bytes<j>());                                             \
    a##i = hn::MulAdd(w.v3, x_3, hn::MulAdd(w.v2, x_2, hn::MulAdd(w.v1, x_1, hn::MulAdd(w.v0, x_0, a##i)))); \
  }
#define SINTER_COLUMN0(i) SINTER_COLUMN(i, 0)
#define SINTER_COLUMN1(i) SINTER_COLUMN(i, 1)
#define SINTER_COLUMN2(i) SINTER_COLUMN(i, 2)
#define SINTER_COLUMN3(i) SINTER_COLUMN(i, 3)
#define SINTER_ROW(i)                                                \
  a##i = hn::MulAdd(w.v0, hn::LoadU(d, x##i + p), a##i);             \
  a##i = hn::MulAdd(w.v1, hn::LoadU(d, x##i + p + lanes), a##i);     \
  a##i = hn::MulAdd(w.v2, hn::LoadU(d, x##i + p + 2 * lanes), a##i); \
  a##i = hn::MulAdd(w.v3, hn::LoadU(d, x##i + p + 3 * lanes), a##i);
            SINTER_VECTOR(0) SINTER_VECTOR(1) SINTER_VECTOR(2) SINTER_VECTOR(3)
#undef SINTER_ROW
#undef SINTER_COLUMN0
#undef SINTER_COLUMN1
#undef SINTER_COLUMN2
#undef SINTER_COLUMN3
#undef SINTER_COLUMN
#undef SINTER_VECTOR
          }
        }
        if (with_zeros) {
          V zero = hn::TableLookupLanes(hn::LoadU(d, zero0 + at), lane_block);
#define SINTER_ZERO(i)                                                                            \
  if (i > 0 && i < kColumns) zero = hn::TableLookupLanes(hn::LoadU(d, zero##i + at), lane_block); \
  a##i = hn::NegMulAdd(zero, hn::LoadU(d, x##i + numbers + lanes), a##i);
          SINTER_FOUR(SINTER_ZERO)
#undef SINTER_ZERO
        }
        ahead.scales(kColumns);
        V scale = hn::TableLookupLanes(load_scales(scale0 + at), lane_block);
#define SINTER_SCALE(i)                                                                            \
  if (i > 0 && i < kColumns) scale = hn::TableLookupLanes(load_scales(scale##i + at), lane_block); \
  s##i = hn::MulAdd(a##i, kRounded ? hn::Mul(scale, hn::LoadU(d, x##i + numbers + 2 * lanes)) : scale, s##i);
        SINTER_FOUR(SINTER_SCALE)
#undef SINTER_SCALE
        x0 += record, k += skip;
      }
    }
    const auto finish = [&](int64_t i, float sum) {
      const int64_t row = kRows > 1 ? i : 0, column = kRows > 1 ? n : n + i;
      if (row >= rows || column >= last) return;
      sum = codes.sum_of(g, column, sum);
      if (bias != nullptr) sum += bias[column];
      y[row * y_stride + column] = sum < min ? min : sum > max ? max : sum;
    };
    finish(0, hn::ReduceSum(d, s0)), finish(1, hn::ReduceSum(d, s1));
    finish(2, hn::ReduceSum(d, s2)), finish(3, hn::ReduceSum(d, s3));
  }
}

template <class Codes, bool kRounded, class Scale>
HWY_INLINE void products_of_scales(const LowBit& g, const float* arranged, int64_t stride, int64_t rows,
                                   int64_t first, int64_t last, const float* bias, float min, float max,
                                   float* y, int64_t y_stride) {
  // A row of x that could be fixed-point numbers has that form (choose_arrangement), so no code here.
  constexpr bool kOneRow = kRounded || !(SINTER_FIXED && Codes::kIntegers && Codes::kBits <= kMostFixedBits);
  if constexpr (unpacks_once(Codes::kBits) && !kIsRare<Codes>) {
    if (rows > 1 || !kOneRow)
      return products<Codes, 4, kRounded, Scale>(g, arranged, stride, rows, first, last, bias, min, max, y,
                                                 y_stride);
  }
  if constexpr (kOneRow) {
    for (int64_t r = 0; r < rows; ++r, arranged += stride, y += y_stride)
      if constexpr (kRounded)
        column_products<Codes::kBits, false, Scale>(g, arranged, first, last, bias, min, max, y);
      else
        products<Codes, 1, false, Scale>(g, arranged, stride, 1, first, last, bias, min, max, y, y_stride);
  }
}

// Calls run(Scale()) with the type in which scales are read.
template <int kBits, class Run>
HWY_INLINE void for_scales([[maybe_unused]] const LowBit& g, const Run& run) {
#if SINTER_WIDENS_SCALES
  if constexpr (unpacks_once(kBits))  // the usual widths only, for the size of the code
    if (reads_half_scales(g)) return run(hwy::float16_t());
#endif
  run(float());
}

// Multiplies a row of x that is by itself with the weights (choose_arrangement).
template <int kBits>
HWY_INLINE void products_of_one_row(const LowBit& g, const float* arranged, int64_t first, int64_t last,
                                    const float* bias, float min, float max, float* y) {
  if constexpr (SINTER_ONE_STREAM && !has_planes(kBits))
    if (g.is_one_stream) {
      if (reads_half_scales(g))
        return one_row_products<kBits, hwy::float16_t>(g, arranged, first, last, bias, min, max, y);
      return one_row_products<kBits, float>(g, arranged, first, last, bias, min, max, y);
    }
  if constexpr (SINTER_FIXED && kBits <= kMostFixedBits)
    for_scales<kBits>(g, [&](auto scale) {
      column_products<kBits, true, decltype(scale)>(g, arranged, first, last, bias, min, max, y);
    });
}

template <int kBits>
HWY_INLINE void products_of_form(const LowBit& g, const float* arranged, int64_t stride, int64_t rows,
                                 int64_t first, int64_t last, const float* bias, float min, float max,
                                 float* y, int64_t y_stride) {
  if (g.is_one_stream || g.is_fixed) {
    for (int64_t r = 0; r < rows; ++r)
      products_of_one_row<kBits>(g, arranged + r * stride, first, last, bias, min, max, y + r * y_stride);
    return;
  }
  for_scales<kBits>(g, [&](auto scale) {
    using Scale = decltype(scale);
    if (g.is_rounded)
      products_of_scales<IntegerCodes<kBits>, true, Scale>(g, arranged, stride, rows, first, last, bias, min,
                                                           max, y, y_stride);
    else
      products_of_scales<IntegerCodes<kBits>, false, Scale>(g, arranged, stride, rows, first, last, bias, min,
                                                            max, y, y_stride);
  });
}

void low_bit_products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows, int64_t first,
                      int64_t last, const float* bias, float min, float max, float* y, int64_t y_stride) {
  for_codes(g.format, [&](auto tag) {
    using Codes = typename decltype(tag)::type;
    if constexpr (Codes::kIntegers)
      products_of_form<Codes::kBits>(g, arranged, stride, rows, first, last, bias, min, max, y, y_stride);
    else
      products_of_scales<Codes, false, float>(g, arranged, stride, rows, first, last, bias, min, max, y,
                                              y_stride);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(low_bit_products);

namespace {

// Multiplies one row of x, arranged as floats, without the numbers that fill up its blocks: each number is
// multiplied by its weight, of an integer less the zero point.
void centred_products(const LowBit& g, const float* arranged, int64_t first, int64_t last, const float* bias,
                      float min, float max, float* y) {
  const LowBitGroups groups(g, low_bit_lanes());
  const int64_t word = groups.chunk / groups.lanes, vectors = word / 4;
  const auto x = [&](int64_t k) {
    const int64_t in_group = k % groups.group, in_chunk = in_group % groups.chunk, in_word = in_chunk % word;
    const int64_t vector = in_word % vectors * 4 + in_word / vectors;
    const float number =
        arranged[kArrangedHead + k / groups.group * groups.record + in_group / groups.chunk * groups.chunk +
                 vector * groups.lanes + in_chunk / word];
    return vector % 2 != 0 && g.format.is_integer() ? number * 256 : number;
  };
  for (int64_t n = first; n < last; ++n) {
    const uint8_t* row = g.weights + n * g.row_bytes();
    const unsigned flip = g.format.sign_bit();
    float sum = bias != nullptr ? bias[n] : 0.0f;
    for (int64_t k = 0; k < g.depth; ++k) {
      const int64_t at = n * g.blocks + k / g.block;
      const unsigned code = bit_row_item(row, g.format.bits, g.depth, k) ^ flip;
      const float weight = g.numbers != nullptr ? g.numbers[code] : static_cast<float>(code);
      sum += (weight - low_bit_zero(g, at)) * low_bit_scale(g, at) * x(k);
    }
    y[n] = sum < min ? min : sum > max ? max : sum;
  }
}

}  // namespace

void low_bit_products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows, int64_t first,
                      int64_t last, const float* bias, float min, float max, float* y, int64_t y_stride) {
  // True if numbers are multiplied one by one: integers if the row's first float is not 0 (kArrangedHead),
  // and tables if their first number, which fills up blocks, is not finite.
  const auto by_number = [&](int64_t r) {
    if (g.numbers != nullptr) return !std::isfinite(g.numbers[0]);
    return !g.is_rounded && g.format.is_integer() && arranged[r * stride] != 0;
  };
  bool any = false;
  for (int64_t r = 0; r < rows; ++r) any = any || by_number(r);
  if (any) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = arranged + r * stride;
      if (by_number(r))
        centred_products(g, row, first, last, bias, min, max, y + r * y_stride);
      else
        HWY_DYNAMIC_DISPATCH(low_bit_products)
      (g, row, stride, 1, first, last, bias, min, max, y + r * y_stride, y_stride);
    }
    return;
  }
  HWY_DYNAMIC_DISPATCH(low_bit_products)
  (g, arranged, stride, rows, first, last, bias, min, max, y, y_stride);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
