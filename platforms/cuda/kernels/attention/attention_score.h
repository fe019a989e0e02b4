// The common parts of attention's kernels: the meaning of a score, and weights relative to the largest score
// so far.
//
// Rules are those of AttentionRule (runtime/core/op_enums.h), results those of runtime/kernels/attention.cc.
// Source of the running maximum: Milakov and Gimelshein, Online normalizer calculation for softmax (2018).
#pragma once

#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/attention/attention.h"
#include "platforms/cuda/kernels/product/epilogue.h"

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

// Returns the number of existing keys of a sequence. A length out of range is reported, and counts as 0.
SINTER_DEVICE int32_t keys_of_batch(const AttentionArguments& a, uint32_t batch) {
  if (a.lengths == nullptr) return a.keys;
  const int64_t length = a.lengths[batch];
  if (length >= 0 && length <= a.keys) return static_cast<int32_t>(length);
  if (thread_index() == 0) report_fault(a.fault, FaultCode::kLength, batch);
  return 0;
}

// The keys that a query attends to.
struct KeyRange {
  int32_t begin = 0, end = 0;
};
// `length` is that of its sequence.
SINTER_DEVICE KeyRange attended_keys(const AttentionArguments& a, int32_t length, int32_t query) {
  if (a.causal == 0) return {0, length};
  int32_t end = query + (length - a.queries_of_head) + 1;
  end = end < 0 ? 0 : end > length ? length : end;
  return {a.window > 0 && end > a.window ? end - a.window : 0, end};
}

// Returns part `split` of the keys that any query of a sequence attends to.
SINTER_DEVICE KeyRange attention_split(const AttentionArguments& a, int32_t length, int32_t split) {
  const int32_t begin = attended_keys(a, length, 0).begin,
                end = attended_keys(a, length, a.queries_of_head - 1).end;
  const int32_t each = ((end - begin + a.splits - 1) / a.splits + kAttentionPass - 1) / kAttentionPass;
  const int64_t first = begin + int64_t{split} * each * kAttentionPass, last = first + each * kAttentionPass;
  return {static_cast<int32_t>(first < end ? first : end), static_cast<int32_t>(last < end ? last : end)};
}

// Returns the score of a visible key from the product of query and key. `hidden`: the key takes no part.
template <class R>
SINTER_DEVICE R score_of(const AttentionArguments& a, R product, R extra, bool* hidden) {
  R score = product * static_cast<R>(a.scale);
  if (a.softcap > 0) {
    const auto cap = static_cast<R>(a.softcap);
    score = m_tanh(score / cap) * cap;
  }
  *hidden = a.rule == kRuleHides && extra == minus_infinity<R>();
  if (a.rule == kRuleReplaces && extra != R(0)) return extra;
  return score + extra;
}

// The running state of one query: the largest score so far, and the sum of the weights relative to it.
template <class R>
struct RunningWeights {
  R top = minus_infinity<R>(), total = 0;
  int32_t any = 0;  // some key takes part
};
// Returns the weight of a score; NaN for NaN and for +infinity.
template <class R>
SINTER_DEVICE R weight_of(R score, R top) {
  return score == minus_infinity<R>() ? R(0) : m_exp(score - top);
}
// Returns the factor that makes sums relative to `top` relative to `higher`.
template <class R>
SINTER_DEVICE R rescale(R top, R higher) {
  return top == higher ? R(1) : m_exp(top - higher);
}

// Adds the numbers of other keys (those of RunningWeights and a sum of weighted values) to `all` and `sum`.
template <class R>
SINTER_DEVICE void combine(R top, R total, R any, R other, RunningWeights<R>* all, R* sum) {
  const R higher = top > all->top ? top : all->top;
  const R mine = rescale(all->top, higher), others = rescale(top, higher);
  *sum = *sum * mine + other * others;
  all->total = all->total * mine + total * others;
  all->any |= any != R(0);
  all->top = higher;
}

// Adds the score of the head's sink, which has no value; returns the factor for sums. `unit` is the total's
// number for a weight of 1.
template <class T, class R>
SINTER_DEVICE R add_sink(const AttentionArguments& a, uint32_t head, R unit, RunningWeights<R>* w) {
  if (a.sinks == nullptr) return R(1);
  const auto sink = static_cast<R>(widen(reinterpret_cast<const T*>(a.sinks)[head]));
  const R higher = sink > w->top ? sink : w->top;
  const R factor = rescale(w->top, higher);
  w->total = w->total * factor + weight_of(sink, higher) * unit;
  w->top = higher;
  return factor;
}

// Returns the sum of weighted values as a result. If only scores of -infinity are left, it is NaN: 0 / 0.
template <class R>
SINTER_DEVICE R finish_value(const AttentionArguments& a, const RunningWeights<R>& w, R sum, KeyRange keys) {
  if (a.rule == kRuleHides && w.any == 0) return R(0);
  if (a.lengths != nullptr && keys.end == 0) return R(0);
  const bool nan = m_isnan(w.total) || (w.top == minus_infinity<R>() && keys.end > 0);
  if (a.rule == kRuleAddsNanToZero && nan) return R(0);
  return sum / w.total;
}

// Returns the bias of a query's first key; null: there is none.
SINTER_DEVICE const std::byte* bias_of(const AttentionArguments& a, uint32_t batch, uint32_t head,
                                       int64_t query) {
  return a.bias == nullptr
             ? nullptr
             : a.bias + batch * a.bias_steps[0] + head * a.bias_steps[1] + query * a.bias_steps[2];
}

}  // namespace sinter::cuda
