// Products of bytes on x86 without dot products of four bytes: vpmaddubsw adds two products in int16, and
// saturates. It is used where the sums are proven to fit.
//
// Weights are packed in cells of kQDepth depths by the columns of a panel. Each cell has a limit: sums of two
// products of a column fit int16 if no input (x + 128, unsigned) is above it. Two neighbouring cells of a run
// have a limit in common for sums of four products, which are then widened once. The limits are compared with
// the largest input of each cell in a box. A cell whose inputs exceed its limit is widened: even and odd
// depths are multiplied separately, as int16.
//
// For a few rows the choice would take longer than the products. Sizes |x| are multiplied by weights that
// have changed sign where x is negative: sums of two products are at most 2 * 128 * 127 unless a weight is
// -128.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_MADDUBS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_MADDUBS_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_MADDUBS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_MADDUBS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "platforms/simd/int8/gemm.h"
#include "platforms/simd/int8/int8-inl.h"

#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

using DU8 = hn::ScalableTag<uint8_t>;
using VU8 = hn::Vec<DU8>;

// ---- packing

// Returns the largest input with which weights of this sum fit.
HWY_INLINE uint8_t limit_of(int32_t most_weights) {
  return static_cast<uint8_t>(std::min(255, 32767 / std::max(most_weights, 1)));
}

// Returns the number of limits of one panel, including the byte behind them.
HWY_INLINE int64_t panel_limits(const QRuns& runs) {
  const int64_t cells = runs.packed_length() / kQDepth;
  return runs.count * (cells + cells / 2) + 1;
}
// Sets the limits of one panel: of its cells, then of the pairs of cells. The last byte is 1 if some weight
// is -128, else 0.
HWY_INLINE void set_limits(const QRuns& runs, const int8_t* panel, uint8_t* limits) {
  const D8 d;
  const D16 d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const VU8 one = hn::Set(DU8(), uint8_t{1});
  const int64_t cells = runs.packed_length() / kQDepth;
  uint8_t* pairs = limits + cells * runs.count;
  V8 least = hn::Zero(d);
  for (int64_t run = 0; run < runs.count; ++run) {
    // The sums of the positive and of the negative weights of each column and pair of depths.
    V16 before[4];
    for (int64_t cell = 0; cell < cells; ++cell) {
      V16 sums[4];
      V16 most = hn::Zero(d16), most_of_two = hn::Zero(d16);
      for (int i = 0; i < 2; ++i, panel += lanes) {
        const V8 w = hn::LoadU(d, panel);
        least = hn::Min(least, w);
        sums[i] = hn::SatWidenMulPairwiseAdd(d16, one, hn::Max(w, hn::Zero(d)));
        sums[2 + i] = hn::Neg(hn::SatWidenMulPairwiseAdd(d16, one, hn::Min(w, hn::Zero(d))));
      }
      for (int i = 0; i < 4; ++i) {
        most = hn::Max(most, sums[i]);
        if (cell % 2 == 1) most_of_two = hn::Max(most_of_two, hn::Add(before[i], sums[i]));
        before[i] = sums[i];
      }
      *limits++ = limit_of(hn::ReduceMax(d16, most));
      if (cell % 2 == 1) *pairs++ = limit_of(hn::ReduceMax(d16, most_of_two));
    }
  }
  *pairs = hn::AllTrue(d, hn::Gt(least, hn::Set(d, int8_t{-128}))) ? 0 : 1;
}

// ---- inputs

// Writes the largest input of cell i in all rows to most[i], or 255 if runs are too short for a vector.
HWY_NOINLINE void find_most(const QRows& rows, const QRuns& runs, uint8_t* most) {
  const int64_t length = runs.packed_length(), cells = length / kQDepth;
  for (int64_t run = 0; run < runs.count; ++run, most += cells) {
    const auto* from = reinterpret_cast<const uint8_t*>(rows.buffer) + rows.runs[run];
    const auto part = [&](auto d, int64_t k) SINTER_SIMD_LAMBDA {
      auto v = hn::Zero(d);
      for (int64_t r = 0; r < rows.count; ++r) v = hn::Max(v, hn::LoadU(d, from + rows.rows[r] + k));
      const hn::Repartition<uint16_t, decltype(d)> d16;
      const hn::Repartition<uint32_t, decltype(d)> d32;
      v = hn::Max(v, hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(d16, v))));
      v = hn::Max(v, hn::BitCast(d, hn::ShiftRight<16>(hn::BitCast(d32, v))));
      const hn::Rebind<uint8_t, decltype(d32)> to;
      hn::StoreU(hn::TruncateTo(to, hn::BitCast(d32, v)), to, most + k / kQDepth);
    };
    const auto parts = [&](auto d) SINTER_SIMD_LAMBDA {
      const auto lanes = static_cast<int64_t>(hn::Lanes(d));
      for (int64_t k = 0; k < length; k += lanes) part(d, std::min(k, length - lanes));
    };
    if (length >= static_cast<int64_t>(hn::Lanes(DU8())))
      parts(DU8());
    else if (length >= 16)
      parts(hn::CappedTag<uint8_t, 16>());
    else
      std::memset(most, 255, static_cast<size_t>(cells));
  }
}

// Stores the smallest number of each depth in `count` rows; returns their sum.
HWY_INLINE int64_t find_minima(const uint8_t* rows, int64_t count, int64_t length, uint8_t* minima) {
  const DU8 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::ScalableTag<uint64_t> d64;
  auto sum = hn::Zero(d64);
  for (int64_t k = 0; k < length; k += lanes) {
    VU8 v = hn::Set(d, uint8_t{255});
    for (int64_t r = 0; r < count; ++r) v = hn::Min(v, hn::LoadU(d, rows + r * length + k));
    v = hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(std::min(lanes, length - k))), v);
    hn::StoreU(v, d, minima + k);
    sum = hn::Add(sum, hn::SumsOf8(v));
  }
  return static_cast<int64_t>(hn::ReduceSum(d64, sum));
}

// Implements lower_q_rows (gemm.h). In most cases the first rows show that nothing is gained.
HWY_NOINLINE void lower_rows(uint8_t* rows, int64_t count, int64_t length, uint8_t* minima) {
  constexpr int64_t kWorthwhile = 16, kFirst = 8;
  const DU8 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (const int64_t n : {std::min(count, kFirst), count})
    if (find_minima(rows, n, length, minima) < kWorthwhile * length)
      return void(std::memset(minima, 0, static_cast<size_t>(length)));
  // `minima` is 0 beyond the row's end, so that bytes behind it are stored as they were.
  for (int64_t r = 0; r < count; ++r, rows += length)
    for (int64_t k = 0; k < length; k += lanes)
      hn::StoreU(hn::Sub(hn::LoadU(d, rows + k), hn::LoadU(d, minima + k)), d, rows + k);
}

// The place of a cell's inputs in a row, and its index in a panel.
struct QStep {
  int32_t input, cell;
};
// The ways in which the cells of a panel are multiplied: in pairs, singly, or singly and widened.
struct QSteps {
  const QStep *pairs, *pairs_end, *single, *single_end, *split, *split_end;
};

// `to` has room for a step of each cell.
HWY_NOINLINE QSteps choose_steps(const QRuns& runs, const int32_t* offsets, const uint8_t* most,
                                 const uint8_t* limits, QStep* to) {
  const auto cells = static_cast<int32_t>(runs.packed_length() / kQDepth);
  const auto all = static_cast<int32_t>(cells * runs.count);
  const uint8_t* pair_limit = limits + all;
  QStep *pair = to, *rest = to + all, *const end = to + all;
  constexpr auto kStep = static_cast<int32_t>(kQDepth);
  for (int32_t run = 0, cell = 0; run < static_cast<int32_t>(runs.count); ++run) {
    int32_t input = offsets[run];
    const int32_t last = cell + cells;
    for (; cell + 1 < last; cell += 2, input += 2 * kStep) {
      // All cells are stored in each list, and count where they belong: branches could not be predicted.
      const bool fits = std::max(most[cell], most[cell + 1]) <= *pair_limit++;
      rest[-1] = {input + kStep, cell + 1}, rest[-2] = {input, cell};
      *pair = {input, cell};
      pair += fits ? 1 : 0, rest -= fits ? 0 : 2;
    }
    if (cell < last) *--rest = {input, cell++};
  }
  QStep* split = rest;
  for (QStep* s = rest; s < end; ++s) {
    const QStep step = *s;
    *s = *split, *split = step;
    split += most[step.cell] <= limits[step.cell] ? 1 : 0;
  }
  return {to, pair, rest, split, split, end};
}

// ---- products

HWY_INLINE VU8 load_cell(const uint8_t* p) {
  int32_t word;
  std::memcpy(&word, p, sizeof(word));
  return hn::BitCast(DU8(), hn::Set(D32(), word));
}
// Returns a cell less 128.
HWY_INLINE V8 signed_cell(const uint8_t* p) {
  return hn::Xor(hn::BitCast(D8(), load_cell(p)), hn::Set(D8(), int8_t{-128}));
}
HWY_INLINE V16 two_products(VU8 x, V8 w) { return hn::SatWidenMulPairwiseAdd(D16(), x, w); }
HWY_INLINE V32 add_widened(V16 products, V32 sum) {
  return hn::Add(sum, hn::WidenMulPairwiseAdd(D32(), products, hn::Set(D16(), int16_t{1})));
}
// The even and the odd depths of a vector of bytes, as int16.
struct Halves {
  V16 even, odd;
  HWY_INLINE explicit Halves(V8 w) {
    const V16 pairs = hn::BitCast(D16(), w);
    even = hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), odd = hn::ShiftRight<8>(pairs);
  }
  HWY_INLINE explicit Halves(VU8 x) {
    const hn::RebindToUnsigned<D16> d;
    const auto pairs = hn::BitCast(d, x);
    even = hn::BitCast(D16(), hn::And(pairs, hn::Set(d, uint16_t{255})));
    odd = hn::BitCast(D16(), hn::ShiftRight<8>(pairs));
  }
};
HWY_INLINE V32 add_products_of(const Halves& x, const Halves& w, V32 sum) {
  return hn::Add(hn::Add(sum, hn::WidenMulPairwiseAdd(D32(), x.even, w.even)),
                 hn::WidenMulPairwiseAdd(D32(), x.odd, w.odd));
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // x86 without dot products of four bytes

#endif  // per-target include guard
