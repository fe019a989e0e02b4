// The folds of numbers by the functions of Reduce and ArgReduce: State start(), void step(State&, V,
// position), and State merge(State, State) of two parts of a set. Functions that are alike share a fold, so
// that kernels stay small.
//
// V is float, double or, for all integers, int64_t (reduce.h).
#pragma once

#include <type_traits>

#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/reduce/reduce.h"

namespace sinter::cuda {

template <class V>
SINTER_DEVICE V infinity_of() {
  return static_cast<V>(float_of(0x7f800000u));
}

// kSum, kMean, kQuantizedMean; kSumSquare; kL1. Integers wrap.
template <class V>
struct SumFold {
  using State = std::conditional_t<std::is_same_v<V, int64_t>, uint64_t, V>;
  SINTER_DEVICE static State start(const ReduceArguments&) { return 0; }
  SINTER_DEVICE static void step(const ReduceArguments& a, State& s, V v, uint32_t) {
    auto term = static_cast<State>(v);
    if (a.fn == FoldFn::kSumSquare) term *= term;
    if (a.fn == FoldFn::kL1 && v < V(0) && a.dtype != DType::kUint64) term = State(0) - term;
    s += term;
  }
  SINTER_DEVICE static State merge(const ReduceArguments&, State s, State t) { return s + t; }
};

// Float sums are kept in two numbers, of which the second has the parts that rounding cut from the first.
// They are as good as double's, which few devices add fast. Source: Knuth, The Art of Computer Programming 2,
// 4.2.2, theorem B.
struct TwofoldSum {
  float sum, rest;
};
template <>
struct SumFold<float> {
  using State = TwofoldSum;
  SINTER_DEVICE static State start(const ReduceArguments&) { return {0, 0}; }
  SINTER_DEVICE static State merge(const ReduceArguments&, State s, State t) {
    const float sum = s.sum + t.sum, of_t = sum - s.sum;
    return {sum, s.rest + t.rest + ((s.sum - (sum - of_t)) + (t.sum - of_t))};
  }
  SINTER_DEVICE static void step(const ReduceArguments& a, State& s, float v, uint32_t) {
    State term = {v, 0};
    if (a.fn == FoldFn::kSumSquare) term = {v * v, m_fma(v, v, -(v * v))};
    if (a.fn == FoldFn::kL1) term.sum = m_fabs(v);
    s = merge(a, s, term);
  }
};
SINTER_DEVICE float result_of(const TwofoldSum& s) {
  const bool finite = s.sum - s.sum == 0;  // else the rest is NaN
  return finite ? s.sum + s.rest : s.sum;
}
SINTER_DEVICE double result_of(double sum) { return sum; }

// kProd. Float products are made in double: float's errors would add up.
template <class V>
struct ProductFold {
  using State = std::conditional_t<std::is_same_v<V, int64_t>, uint64_t, double>;
  SINTER_DEVICE static State start(const ReduceArguments&) { return 1; }
  SINTER_DEVICE static void step(const ReduceArguments&, State& s, V v, uint32_t) {
    s *= static_cast<State>(v);
  }
  SINTER_DEVICE static State merge(const ReduceArguments&, State s, State t) { return s * t; }
};

// kMax, kMin: NaN if a number is.
template <class V>
struct ExtremeFold {
  using State = V;
  SINTER_DEVICE static State start(const ReduceArguments& a) {
    if constexpr (std::is_same_v<V, int64_t>) {
      return a.fn == FoldFn::kMin ? INT64_MAX : INT64_MIN;
    } else {
      return a.fn == FoldFn::kMin ? infinity_of<V>() : -infinity_of<V>();
    }
  }
  SINTER_DEVICE static void step(const ReduceArguments& a, State& s, V v, uint32_t) {
    if ((a.fn == FoldFn::kMin ? v < s : v > s) || v != v) s = v;
  }
  SINTER_DEVICE static State merge(const ReduceArguments& a, State s, State t) {
    step(a, s, t, 0);
    return s;
  }
};

// kIndexOfMax, kIndexOfMin: NaN counts as the extreme, the first or the last of equal ones is taken.
template <class V>
struct Indexed {
  V value;
  uint32_t index;  // ~0: none yet
  uint32_t unused;
};
template <class V>
struct IndexFold {
  using State = Indexed<V>;
  SINTER_DEVICE static State start(const ReduceArguments&) { return {V(0), ~0u, 0}; }
  SINTER_DEVICE static void step(const ReduceArguments& a, State& s, V v, uint32_t index) {
    if (index == ~0u) return;
    const bool nan = v != v, s_nan = s.value != s.value;
    const bool same = v == s.value || (nan && s_nan);
    const bool beyond = a.fn == FoldFn::kIndexOfMin ? v < s.value : v > s.value;
    const bool later = a.select_last != 0 ? index > s.index : index < s.index;
    if (s.index == ~0u || (same ? later : !s_nan && (nan || beyond))) s.value = v, s.index = index;
  }
  SINTER_DEVICE static State merge(const ReduceArguments& a, State s, State t) {
    step(a, s, t.value, t.index);
    return s;
  }
};

// kLogSumExp: the largest, and the sum of exp(v - largest) over numbers above -infinity.
template <class V>
struct LogSum {
  V largest, sum;
};
template <class V>
struct LogSumFold {
  using State = LogSum<V>;
  SINTER_DEVICE static State start(const ReduceArguments&) { return {-infinity_of<V>(), V(0)}; }
  SINTER_DEVICE static State merge(const ReduceArguments&, State s, State t) {
    // The sum beside an infinite largest number is not used.
    const bool greater = t.largest > s.largest || t.largest != t.largest;
    const V factor = m_exp(greater ? s.largest - t.largest : t.largest - s.largest);
    const V small = greater ? s.sum : t.sum;
    return {greater ? t.largest : s.largest,
            (greater ? t.sum : s.sum) + (small == V(0) ? V(0) : small * factor)};
  }
  SINTER_DEVICE static void step(const ReduceArguments& a, State& s, V v, uint32_t) {
    s = merge(a, s, {v, v == -infinity_of<V>() ? V(0) : V(1)});
  }
};
template <class V>
SINTER_DEVICE V result_of(const LogSum<V>& s) {
  const bool finite = s.largest - s.largest == V(0);
  return finite ? s.largest + m_log(s.sum) : s.largest;
}

}  // namespace sinter::cuda
