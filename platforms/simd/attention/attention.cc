// The vector functions of Attention's kernels.
#include "platforms/simd/attention/attention.h"

#include <cmath>
#include <cstring>

#include "runtime/core/op_enums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/attention/attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/attention/attention-inl.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// By rule kHides, a bias of -inf hides its key whatever the score. A NaN may be missed by the largest; it
// comes back through the exponentials.
template <bool kCapped>
HWY_INLINE float weights_of(const AttentionAttrs& a, float* scores, size_t begin, size_t end, size_t count,
                            const float* bias, size_t bias_step, SoftmaxState* state) {
  const F d;
  const auto rule = static_cast<AttentionRule>(a.rule);
  const size_t lanes = hn::Lanes(d);
  const V factor = set(static_cast<float>(a.scale)), lowest = set(-HUGE_VALF), zero = hn::Zero(d);
  [[maybe_unused]] const V cap = set(static_cast<float>(a.softcap));
  V most = lowest, seen = zero;
  for (size_t i = 0; i < begin; ++i) scores[i] = 0;
  for (size_t i = end; i < count; ++i) scores[i] = 0;
  for (size_t i = begin; i < end; i += lanes) {
    const size_t some = end - i < lanes ? end - i : lanes;
    const auto valid = hn::FirstN(d, some);
    V v = hn::Mul(hn::LoadN(d, scores + i, some), factor);
    if constexpr (kCapped) v = hn::Mul(tanh(hn::Div(v, cap)), cap);
    auto shown = valid;
    if (bias != nullptr) {
      const V b = bias_step == 0 ? hn::Set(d, *bias) : hn::LoadN(d, bias + i, some);
      if (rule == AttentionRule::kHides) shown = hn::AndNot(hn::Eq(b, lowest), valid);  // a NaN hides nothing
      v = rule == AttentionRule::kReplaces ? hn::IfThenElse(hn::Eq(b, zero), v, b) : hn::Add(v, b);
    }
    v = hn::IfThenElse(shown, v, lowest);
    hn::StoreN(v, d, scores + i, some);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
    seen = hn::IfThenElse(shown, set(1.0f), seen);
  }
  if (hn::ReduceSum(d, seen) != 0.0f) state->seen = true;
  const float before = state->top, top = hn::ReduceMax(d, hn::Max(most, set(before)));
  // Without a score above -inf, only NaN has a weight.
  const bool none = top == -HUGE_VALF;
  const V shift = set(none ? 0.0f : top);
  V sum = hn::Zero(d);
  for (size_t i = begin; i < end; i += lanes) {
    const size_t some = end - i < lanes ? end - i : lanes;
    const V e = exp(hn::Sub(hn::LoadN(d, scores + i, some), shift));
    hn::StoreN(e, d, scores + i, some);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, some), e));
  }
  float earlier = 1;
  if (before == -HUGE_VALF && !none)
    earlier = 0;
  else if (before != top)
    earlier = hn::GetLane(exp(hn::Sub(set(before), shift)));
  state->top = top;
  state->sum = state->sum * earlier + hn::ReduceSum(d, sum);
  return earlier;
}

float attention_weights(const AttentionAttrs& a, float* scores, size_t begin, size_t end, size_t count,
                        const float* bias, size_t bias_step, SoftmaxState* state) {
  return a.softcap > 0 ? weights_of<true>(a, scores, begin, end, count, bias, bias_step, state)
                       : weights_of<false>(a, scores, begin, end, count, bias, bias_step, state);
}

// Computes to[2 i] = even[i], to[2 i + 1] = odd[i].
void attention_merge(const float* even, const float* odd, int64_t n, float* to) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreInterleaved2(hn::LoadU(d, even + i), hn::LoadU(d, odd + i), d, to + 2 * i);
  for (; i < n; ++i) to[2 * i] = even[i], to[2 * i + 1] = odd[i];
}

void attention_split(const float* from, int64_t n, float* even, float* odd) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V a, b;
    hn::LoadInterleaved2(d, from + 2 * i, a, b);
    hn::StoreU(a, d, even + i), hn::StoreU(b, d, odd + i);
  }
  for (; i < n; ++i) even[i] = from[2 * i], odd[i] = from[2 * i + 1];
}

void widen_all(const Pair* from, int64_t n, float* to) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n / 2; i += lanes)
    hn::StoreInterleaved2(load_part<0, true>(from + i, lanes), load_part<1, true>(from + i, lanes), d,
                          to + 2 * i);
  for (; i < n / 2; ++i) {
    to[2 * i] = static_cast<float>((from[i].byte & 15) - kAttentionMiddle);
    to[2 * i + 1] = static_cast<float>((from[i].byte >> 4) - kAttentionMiddle);
  }
}
template <class E>
void widen_all(const E* from, int64_t n, float* to) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(load_wide(from + i), d, to + i);
  if (i < n) hn::StoreN(load_wide(from + i, n - i), d, to + i, static_cast<size_t>(n - i));
}

template <class E>
void all_products(const float* q, int64_t rows, int64_t size, const E* k, int64_t count, float* y,
                  int64_t stride) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) row_products<4>(q + r * size, size, k, count, y + r * stride, stride);
  if (r + 2 <= rows) row_products<2>(q + r * size, size, k, count, y + r * stride, stride), r += 2;
  if (r < rows) row_products<1>(q + r * size, size, k, count, y + r * stride, stride);
}

template <class E>
void all_values(const float* w, int64_t rows, int64_t stride, const E* v, int64_t count, int64_t size,
                float* y) {
  // The number of keys whose values stay in the first-level cache while all rows read them.
  constexpr int64_t kKeys = 32;
  for (int64_t j = 0; j < count; j += kKeys) {
    const int64_t n = count - j < kKeys ? count - j : kKeys;
    const float* from = w + j;
    const E* values = v + j * (size / kParts<E>);
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) row_values<4>(from + r * stride, stride, values, n, size, y + r * size);
    if (r + 2 <= rows) row_values<2>(from + r * stride, stride, values, n, size, y + r * size), r += 2;
    if (r < rows) row_values<1>(from + r * stride, stride, values, n, size, y + r * size);
  }
}

// Calls f with the elements as those of their type.
template <class Function>
void with_elements(DType type, const std::byte* data, Function&& f) {
  switch (type) {
    case DType::kFloat16:
      return f(reinterpret_cast<const hwy::float16_t*>(data));
    case DType::kBFloat16:
      return f(reinterpret_cast<const hwy::bfloat16_t*>(data));
    case DType::kFloat8E4M3FN:
      return f(reinterpret_cast<const uint8_t*>(data));
    case DType::kInt8:
      return f(reinterpret_cast<const int8_t*>(data));
    case DType::kUint8:
      return f(reinterpret_cast<const Pair*>(data));
    default:
      return f(reinterpret_cast<const float*>(data));
  }
}

void attention_widen(DType type, const std::byte* from, int64_t n, float* to) {
  with_elements(type, from, [&](const auto* x) SINTER_SIMD_LAMBDA { widen_all(x, n, to); });
}

void attention_products(DType type, const float* q, int64_t rows, int64_t size, const std::byte* keys,
                        int64_t count, float* y, int64_t stride) {
  with_elements(type, keys,
                [&](const auto* k) SINTER_SIMD_LAMBDA { all_products(q, rows, size, k, count, y, stride); });
}

void attention_values(DType type, const float* weights, int64_t rows, int64_t stride, const std::byte* values,
                      int64_t count, int64_t size, float* y) {
  with_elements(type, values, [&](const auto* v) SINTER_SIMD_LAMBDA {
    all_values(weights, rows, stride, v, count, size, y);
  });
}

void attention_scale(float* numbers, const float* scales, int64_t count, bool hides) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < count; j += lanes) {
    const auto n = static_cast<size_t>(count - j < lanes ? count - j : lanes);
    const V x = hn::LoadN(d, numbers + j, n), y = hn::Mul(x, hn::LoadN(d, scales + j, n));
    hn::StoreN(hides ? hn::IfThenElseZero(hn::Ne(x, hn::Zero(d)), y) : y, d, numbers + j, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(attention_weights);
HWY_EXPORT(attention_widen);
HWY_EXPORT(attention_merge);
HWY_EXPORT(attention_split);
HWY_EXPORT(attention_products);
HWY_EXPORT(attention_values);
HWY_EXPORT(attention_scale);

float add_weights(const AttentionAttrs& a, float* scores, KeyRange keys, int64_t count, BiasRow bias,
                  SoftmaxState* state) {
  return HWY_DYNAMIC_DISPATCH(attention_weights)(a, scores, static_cast<size_t>(keys.begin),
                                                 static_cast<size_t>(keys.end), static_cast<size_t>(count),
                                                 bias.first, static_cast<size_t>(bias.step), state);
}
void widen(DType type, const std::byte* from, int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(attention_widen)(type, from, n, to);
}
void split_pairs(const float* from, int64_t size, float* to) {
  HWY_DYNAMIC_DISPATCH(attention_split)(from, size / 2, to, to + size / 2);
}
void merge_pairs(const float* from, int64_t size, float* to) {
  HWY_DYNAMIC_DISPATCH(attention_merge)(from, from + size / 2, size / 2, to);
}
void multiply_keys(DType type, const float* queries, int64_t rows, int64_t size, const std::byte* keys,
                   int64_t count, float* products, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(attention_products)(type, queries, rows, size, keys, count, products, stride);
}
void add_values(DType type, const float* weights, int64_t rows, int64_t stride, const std::byte* values,
                int64_t count, int64_t size, float* sums) {
  HWY_DYNAMIC_DISPATCH(attention_values)(type, weights, rows, stride, values, count, size, sums);
}
void scale_keys(float* numbers, const float* scales, int64_t count, bool hides) {
  HWY_DYNAMIC_DISPATCH(attention_scale)(numbers, scales, count, hides);
}

float add_visible(DType type, const float* weights, KeyRange keys, const std::byte* values, int64_t size,
                  int64_t element, bool hides) {
  const bool pairs = holds_pairs(type);
  const int64_t width = pairs ? 1 : static_cast<int64_t>(byte_width(type)), items = pairs ? size / 2 : size;
  values += (pairs ? element / 2 : element) * width;
  float sum = 0;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    if (weights[j] == 0 && hides) continue;
    float v[2] = {};
    if (type == DType::kFloat32)
      std::memcpy(v, values + j * items * width, sizeof(float));
    else
      widen(type, values + j * items * width, pairs ? 2 : 1, v);
    sum += weights[j] * v[pairs ? element % 2 : 0];
  }
  return sum;
}

AttentionEnd attention_end(const OpCall& call, int64_t head, SoftmaxState state) {
  const auto rule = static_cast<AttentionRule>(call.attrs<AttentionAttrs>().rule);
  if (!state.seen && (rule == AttentionRule::kHides || call.has_input(kLengths))) return {0, true};
  float factor = 1;
  if (call.has_input(kSinks)) {
    const float sink = call.in(kSinks).as<const float>()[head];
    const float top = sink > state.top ? sink : state.top;
    if (top != -HUGE_VALF) {
      factor = state.top == -HUGE_VALF ? 1.0f : std::exp(state.top - top);
      // A sink of -inf has no weight; a sink of NaN makes all weights NaN.
      state.sum = state.sum * factor + (sink == -HUGE_VALF ? 0.0f : std::exp(sink - top));
    }
  }
  if (rule == AttentionRule::kAddsNanToZero && (std::isnan(state.sum) || (state.sum == 0 && state.seen)))
    return {0, true};
  return {factor / state.sum, false};
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
