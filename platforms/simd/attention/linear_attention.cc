// LinearAttention. The columns of a state change independently of each other: a thread takes some of them
// through all tokens, so that they stay in its cache, and a state is read and written once.
#include "platforms/simd/attention/linear_attention.h"

#include <cmath>

#include "platforms/simd/table.h"
#include "runtime/core/op_enums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/attention/linear_attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

void decay_factors(const float* decay, float* factors, int64_t count) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const auto n = static_cast<size_t>(count - i < lanes ? count - i : lanes);
    hn::StoreN(exp(hn::LoadN(d, decay + i, n)), d, factors + i, n);
  }
}

// A position in the columns: kVectors vectors of them, or the first `n` of one vector.
template <int kVectors, bool kPart>
struct StateColumns {
  size_t n;
  HWY_INLINE V load(const float* p, int i) const {
    const F d;
    if constexpr (kPart)
      return hn::LoadN(d, p, n);
    else
      return hn::LoadU(d, p + static_cast<size_t>(i) * hn::Lanes(d));
  }
  HWY_INLINE void store(V v, float* p, int i) const {
    const F d;
    if constexpr (kPart)
      hn::StoreN(v, d, p, n);
    else
      hn::StoreU(v, d, p + static_cast<size_t>(i) * hn::Lanes(d));
  }
};

// Computes a token's addend: its value, or beta times the difference of the value and the state's answer.
template <int kVectors, bool kPart>
HWY_INLINE void state_addend(const StateToken& t, const StateColumns<kVectors, kPart>& at,
                             V (&add)[kVectors]) {
  for (int i = 0; i < kVectors; ++i) add[i] = at.load(t.value, i);
  if (t.beta == nullptr) return;
  V known[kVectors];
  for (int i = 0; i < kVectors; ++i) known[i] = set(0.0f);
  const float* row = t.from;
  for (int64_t k = 0; k < t.key_size; ++k, row += t.value_size) {
    const V key = set(t.factor == nullptr ? t.key[k] : t.key[k] * t.factor[k * t.factor_step]);
    for (int i = 0; i < kVectors; ++i) known[i] = hn::MulAdd(key, at.load(row, i), known[i]);
  }
  const V beta = set(*t.beta);
  for (int i = 0; i < kVectors; ++i) add[i] = hn::Mul(beta, hn::Sub(add[i], known[i]));
}

template <int kVectors, bool kPart>
HWY_INLINE void update_vectors(const StateToken& t, size_t n) {
  const StateColumns<kVectors, kPart> at{n};
  V add[kVectors], sum[kVectors];
  state_addend(t, at, add);
  for (int i = 0; i < kVectors; ++i) sum[i] = set(0.0f);
  const float* from = t.from;
  float* to = t.to;
  for (int64_t k = 0; k < t.key_size; ++k, from += t.value_size, to += t.value_size) {
    const V key = set(t.key[k]), query = set(t.query[k]);
    const V factor = set(t.factor == nullptr ? 1.0f : t.factor[k * t.factor_step]);
    for (int i = 0; i < kVectors; ++i) {
      const V s = hn::MulAdd(key, add[i], hn::Mul(factor, at.load(from, i)));
      at.store(s, to, i);
      sum[i] = hn::MulAdd(query, s, sum[i]);
    }
  }
  const V scale = set(t.scale);
  for (int i = 0; i < kVectors; ++i) at.store(hn::Mul(scale, sum[i]), t.result, i);
  // These are further query heads of the same state.
  for (int64_t q = 1; q < t.queries; ++q) {
    for (int i = 0; i < kVectors; ++i) sum[i] = set(0.0f);
    const float* row = t.to;
    for (int64_t k = 0; k < t.key_size; ++k, row += t.value_size) {
      const V query = set(t.query[q * t.key_size + k]);
      for (int i = 0; i < kVectors; ++i) sum[i] = hn::MulAdd(query, at.load(row, i), sum[i]);
    }
    for (int i = 0; i < kVectors; ++i) at.store(hn::Mul(scale, sum[i]), t.result + q * t.value_size, i);
  }
}

void update_state(const StateToken& token, int64_t columns) {
  constexpr int kVectors = 4;
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  StateToken t = token;
  const auto advance = [&](int64_t n) { t.value += n, t.from += n, t.to += n, t.result += n, columns -= n; };
  while (columns >= kVectors * lanes) update_vectors<kVectors, false>(t, 0), advance(kVectors * lanes);
  while (columns >= lanes) update_vectors<1, false>(t, 0), advance(lanes);
  if (columns > 0) update_vectors<1, true>(t, static_cast<size_t>(columns));
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(decay_factors);
HWY_EXPORT(update_state);

enum StateOperand : size_t { kQuery, kKey, kValue, kState, kDecay, kBeta };
constexpr int64_t kStateColumns = 64;  // of one piece of work

struct StateExtent {
  int64_t batch, tokens, queries, heads, key_size, value_size;

  int64_t head_size() const { return key_size * value_size; }
  int64_t state_size() const { return batch * heads * head_size(); }
};
StateExtent state_extent(const OpCall& call) {
  const TensorView &q = call.in(kQuery), &v = call.in(kValue);
  return {q.dims[0], q.dims[1], q.dims[2], v.dims[2], q.dims[3], v.dims[3]};
}

// Counts the floats of the factors, and of a state that is not an output.
bool state_scratch(const OpCall& call, int64_t* factors, int64_t* floats) {
  *factors = call.has_input(kDecay) ? call.in(kDecay).size() : 0;
  return checked_add(*factors, call.has_output(1) ? 0 : state_extent(call).state_size(), floats);
}

Status linear_attention_workspace(const OpCall& call, int, size_t* bytes) {
  int64_t factors = 0, n = 0;
  SINTER_RETURN_UNLESS(state_scratch(call, &factors, &n) && checked_mul<int64_t>(n, sizeof(float), &n),
                       too_much_workspace());
  *bytes = static_cast<size_t>(n);
  return ok_status();
}

// The places of the states after the last tokens, each in a slot of the window; earlier ones share the first.
struct StateSlots {
  float* data;
  int64_t count, tokens, size;

  float* after(int64_t token) const { return data + std::max<int64_t>(token - tokens + count, 0) * size; }
};

// Computes columns first .. last - 1 of one head of one sequence, for all tokens.
void update_state_columns(const OpCall& call, const StateExtent& e, const StateSlots& slots,
                          const float* factors, int64_t head, int64_t first, int64_t last) {
  const auto& a = call.attrs<LinearAttentionAttrs>();
  const int64_t batch = head / e.heads, own = head % e.heads, at = head * e.head_size() + first,
                group = std::max<int64_t>(e.queries / e.heads, 1), results = std::max(e.queries, e.heads);
  const float* from = call.has_input(kState) ? call.in(kState).as<const float>() + at : nullptr;
  StateToken t;
  t.key_size = e.key_size, t.value_size = e.value_size, t.queries = group;
  t.scale = static_cast<float>(a.scale);
  const int64_t factor_size = call.has_input(kDecay) ? call.in(kDecay).dims[3] : 0,
                betas = call.has_input(kBeta) ? call.in(kBeta).dims[2] : 0;
  t.factor_step = factor_size == 1 ? 0 : 1;
  for (int64_t i = 0; i < e.tokens; ++i) {
    const int64_t row = batch * e.tokens + i,
                  query = e.queries >= e.heads ? own * group : own / (e.heads / e.queries);
    t.query = call.in(kQuery).as<const float>() + (row * e.queries + query) * e.key_size;
    t.key = call.in(kKey).as<const float>() + (row * e.heads + own) * e.key_size;
    t.value = call.in(kValue).as<const float>() + (row * e.heads + own) * e.value_size + first;
    t.factor = factor_size == 0 ? nullptr : factors + (row * e.heads + own) * factor_size;
    t.beta = betas == 0 ? nullptr : call.in(kBeta).as<const float>() + (betas == 1 ? row : row * betas + own);
    t.result = call.out(0).as<float>() + (row * results + own * group) * e.value_size + first;
    t.to = slots.after(i) + at;
    if (from == nullptr) {
      for (int64_t k = 0; k < e.key_size; ++k) std::fill_n(t.to + k * e.value_size, last - first, 0.0f);
      from = t.to;
    }
    t.from = from;
    HWY_DYNAMIC_DISPATCH(update_state)(t, last - first);
    from = t.to;
  }
}

Status run_linear_attention(const OpCall& call, RunContext& context) {
  const StateExtent e = state_extent(call);
  const int64_t window = call.attrs<LinearAttentionAttrs>().window;
  auto* factors = reinterpret_cast<float*>(context.workspace.data());
  int64_t factor_count = 0, floats = 0;
  if (!state_scratch(call, &factor_count, &floats) ||
      context.workspace.size() / sizeof(float) < static_cast<size_t>(floats))
    return too_much_workspace();
  const StateSlots slots{call.has_output(1) ? call.out(1).as<float>() : factors + factor_count,
                         call.has_output(1) ? std::max<int64_t>(window, 1) : 1, e.tokens, e.state_size()};
  const int64_t unused = window > 0 ? std::clamp<int64_t>(window - e.tokens, 0, window) : 0;
  if (call.has_output(1) && unused > 0) std::fill_n(slots.data, unused * slots.size, 0.0f);
  if (e.tokens == 0) {
    if (call.has_output(1) && window == 0) {
      const float* old = call.has_input(kState) ? call.in(kState).as<const float>() : nullptr;
      if (old == nullptr)
        std::fill_n(slots.data, slots.size, 0.0f);
      else if (old != slots.data)
        std::copy_n(old, slots.size, slots.data);
    }
    return ok_status();
  }
  constexpr int64_t kGrain = 4096;
  if (factor_count > 0) {
    const float* decay = call.in(kDecay).as<const float>();
    parallel_for(context.threads, factor_count, kGrain, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(decay_factors)(decay + begin, factors + begin, end - begin);
    });
  }
  const int64_t pieces = divide_up(e.value_size, kStateColumns);
  const int64_t work = std::max<int64_t>(e.key_size * kStateColumns * e.tokens, 1);
  parallel_for(context.threads, e.batch * e.heads * pieces, std::max<int64_t>(8 * kGrain / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t unit = begin; unit < end; ++unit) {
                   const int64_t first = unit % pieces * kStateColumns;
                   update_state_columns(call, e, slots, factors, unit / pieces, first,
                                        std::min(first + kStateColumns, e.value_size));
                 }
               });
  return ok_status();
}

Status accept_linear_attention(const OpCall& call) {
  SINTER_RETURN_UNLESS(call.has_output(0),
                       unsupported("the simd kernel computes a state and its results together"));
  return accept_float_dense(call);
}

}  // namespace

const Kernel kLinearAttentionKernel = {Op::kLinearAttention, nullptr, linear_attention_workspace,
                                       run_linear_attention, accept_linear_attention};

}  // namespace sinter::simd
#endif  // HWY_ONCE
