// Gate rows of int8 times a vector of int16 (gate_rows.h).
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_RECURRENT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_RECURRENT_ROWS_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_RECURRENT_ROWS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_RECURRENT_ROWS_INL_H_
#endif

#include "platforms/simd/int8/gate_rows.h"
#include "platforms/simd/int8/int8-inl.h"
#include "platforms/simd/int8/recurrent_dot_neon-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {
namespace {

using Four = hn::FixedTag<int32_t, 4>;

// Returns the sum of a vector's blocks of four.
template <class D>
HWY_INLINE hn::Vec<Four> sum_of_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Returns the sum of each of four vectors.
HWY_INLINE hn::Vec<Four> four_sums(V32 a, V32 b, V32 c, V32 e) {
  const D32 d;
  const hn::RepartitionToWide<D32> pairs;
  const auto ab = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b))),
             ce = hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  return sum_of_blocks(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)),
                                  hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce))));
}

// to[r] = float(row r . v) * multipliers[r] + bias[r]. Sums wrap, as the reference kernel's do. `small`: v is
// below 2^14.
void flow_in(const GateRows& rows, const int16_t* v, [[maybe_unused]] bool small, float* to) {
  const D16 d;
  const D32 d32;
  const hn::Rebind<int8_t, D16> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = rows.depth / lanes * lanes;
  const auto rest = static_cast<size_t>(rows.depth - whole);
  // The rest is read together with numbers before it, which then count as zeros.
  HWY_ALIGN int16_t last[hn::MaxLanes(D16())] = {};
  const bool together = whole > 0;
  if (rest > 0) std::memcpy(together ? last + lanes - rest : last, v + whole, rest * sizeof(int16_t));
  const auto end = hn::Load(d, last);
  const auto load_end = [=](const int8_t* row) SINTER_SIMD_LAMBDA {
    return together ? hn::LoadU(d8, row + rest + whole - lanes) : hn::LoadN(d8, row, rest);
  };
  const auto product = [](auto w, auto x, V32 sum) SINTER_SIMD_LAMBDA {
    return hn::Add(sum, hn::WidenMulPairwiseAdd(D32(), hn::PromoteTo(D16(), w), x));
  };
  int64_t r = 0;
#if HWY_TARGET == HWY_NEON
  small = small || fit_two_bytes(v, rows.depth);
  if (rows.depth >= kDotDepths)
    for (; r + kDotRows <= rows.count; r += kDotRows)
      (small ? flow_in_eight<false> : flow_in_eight<true>)(rows.weights + r * rows.depth, rows.depth, v,
                                                           rows.multipliers + r, rows.bias + r, to + r);
#endif
  for (; r + 4 <= rows.count; r += 4) {
    const int8_t *w0 = rows.weights + r * rows.depth, *w1 = w0 + rows.depth, *w2 = w1 + rows.depth,
                 *w3 = w2 + rows.depth;
    V32 s0 = hn::Zero(d32), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t k = 0; k < whole; k += lanes) {
      const auto x = hn::LoadU(d, v + k);
      s0 = product(hn::LoadU(d8, w0 + k), x, s0), s1 = product(hn::LoadU(d8, w1 + k), x, s1);
      s2 = product(hn::LoadU(d8, w2 + k), x, s2), s3 = product(hn::LoadU(d8, w3 + k), x, s3);
    }
    if (rest > 0) {
      s0 = product(load_end(w0), end, s0), s1 = product(load_end(w1), end, s1);
      s2 = product(load_end(w2), end, s2), s3 = product(load_end(w3), end, s3);
    }
    const hn::RebindToFloat<Four> f;
    const auto sums = hn::ConvertTo(f, four_sums(s0, s1, s2, s3));
    hn::StoreU(hn::Add(hn::Mul(sums, hn::LoadU(f, rows.multipliers + r)), hn::LoadU(f, rows.bias + r)), f,
               to + r);
  }
  for (; r < rows.count; ++r) {
    const int8_t* w = rows.weights + r * rows.depth;
    V32 s = hn::Zero(d32);
    for (int64_t k = 0; k < whole; k += lanes) s = product(hn::LoadU(d8, w + k), hn::LoadU(d, v + k), s);
    if (rest > 0) s = product(load_end(w), end, s);
    const float sum = static_cast<float>(hn::ReduceSum(d32, s)) * rows.multipliers[r];
    to[r] = sum + rows.bias[r];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
