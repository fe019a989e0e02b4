// What the kernels of attention share: the meaning of a score, and weights relative to the largest score so
// far.
//
// Rules are those of runtime/core/op_enums.h's AttentionRule, results those of runtime/kernels/attention.cc.
// Source of the running maximum: Milakov and Gimelshein, Online normalizer calculation for softmax (2018).
#pragma once

#include "platforms/cuda/kernels/attention.h"
#include "platforms/cuda/kernels/finish.h"

namespace sinter::cuda {

inline constexpr int kRuleHides = 0, kRuleReplaces = 2, kRuleAddsNanToZero = 3;
inline constexpr int kAbsentKey = -1;  // the weight of a key that takes no part: its value is not used

// The type of sums.
template <class T>
struct RealOf {
  using Type = float;
};
template <>
struct RealOf<double> {
  using Type = double;
};

template <class R>
SINTER_DEVICE R minus_infinity() {
  return static_cast<R>(float_of(0xff800000u));
}

// The number of keys that a query may attend to: the first ones.
SINTER_DEVICE int32_t visible_keys(const AttentionArguments& a, int32_t query) {
  if (a.causal == 0) return a.keys;
  const int32_t n = query + (a.keys - a.queries_of_head) + 1;
  return n < 0 ? 0 : n > a.keys ? a.keys : n;
}

// The score of a visible key from the product of query and key; `hidden`: the key takes no part.
template <class R>
SINTER_DEVICE R score_of(const AttentionArguments& a, R product, R extra, bool* hidden) {
  const R score = product * static_cast<R>(a.scale);
  *hidden = a.rule == kRuleHides && extra == minus_infinity<R>();
  if (a.rule == kRuleReplaces && extra != R(0)) return extra;
  return score + extra;
}

// Of one query: the largest score so far, and the sum of the weights relative to it.
template <class R>
struct RunningWeights {
  R top = minus_infinity<R>(), total = 0;
  int32_t any = 0;  // some key takes part
};
// The weight of a score; NaN for NaN and for +infinity.
template <class R>
SINTER_DEVICE R weight_of(R score, R top) {
  return score == minus_infinity<R>() ? R(0) : m_exp(score - top);
}
// What sums relative to `top` are multiplied by, to be relative to `higher`.
template <class R>
SINTER_DEVICE R rescale(R top, R higher) {
  return top == higher ? R(1) : m_exp(top - higher);
}

// Adds what was found of other keys (RunningWeights' numbers and a sum of weighted values) to `all` and
// `sum`.
template <class R>
SINTER_DEVICE void combine(R top, R total, R any, R other, RunningWeights<R>* all, R* sum) {
  const R higher = top > all->top ? top : all->top;
  const R mine = rescale(all->top, higher), others = rescale(top, higher);
  *sum = *sum * mine + other * others;
  all->total = all->total * mine + total * others;
  all->any |= any != R(0);
  all->top = higher;
}

// The sum of weighted values as a result. Where only scores of -infinity are left, it is NaN: 0 / 0.
template <class R>
SINTER_DEVICE R finish_value(const AttentionArguments& a, const RunningWeights<R>& w, R sum,
                             int32_t visible) {
  if (a.rule == kRuleHides && w.any == 0) return R(0);
  const bool nan = m_isnan(w.total) || (w.top == minus_infinity<R>() && visible > 0);
  if (a.rule == kRuleAddsNanToZero && nan) return R(0);
  return sum / w.total;
}

}  // namespace sinter::cuda
