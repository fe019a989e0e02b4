// Attention: per tile of queries the scores of all keys, their softmax, and the weighted values, as two
// products. The second multiplies the values of hidden keys by 0, which is NaN where they are not finite:
// such results are added up again without them.
#include <cmath>

#include "platforms/simd/gemm.h"
#include "runtime/core/op_enums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Turns scores into exp(scale * score + bias - largest), zeros from `visible` on; gives their sum, or 0 if no
// key is seen. bias_step is 1, or 0 for one number; by rule kHides, a bias of -inf hides its key whatever the
// score. A NaN may be missed by the largest; it comes back through the exponentials.
float attention_weights(float* scores, size_t visible, size_t keys, float scale, const float* bias,
                        size_t bias_step, AttentionRule rule) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const V factor = set(scale), least = set(-HUGE_VALF), zero = hn::Zero(d);
  V most = least, seen = zero;
  for (size_t i = 0; i < visible; i += lanes) {
    const size_t count = visible - i < lanes ? visible - i : lanes;
    const auto valid = hn::FirstN(d, count);
    V v = hn::Mul(hn::LoadN(d, scores + i, count), factor);
    auto shown = valid;
    if (bias != nullptr) {
      const V b = bias_step == 0 ? hn::Set(d, *bias) : hn::LoadN(d, bias + i, count);
      if (rule == AttentionRule::kHides) shown = hn::AndNot(hn::Eq(b, least), valid);  // a NaN hides nothing
      v = rule == AttentionRule::kReplaces ? hn::IfThenElse(hn::Eq(b, zero), v, b) : hn::Add(v, b);
    }
    v = hn::IfThenElse(shown, v, least);
    hn::StoreN(v, d, scores + i, count);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
    seen = hn::IfThenElse(shown, set(1.0f), seen);
  }
  for (size_t i = visible; i < keys; ++i) scores[i] = 0;
  if (rule == AttentionRule::kHides && hn::ReduceSum(d, seen) == 0.0f) {
    for (size_t i = 0; i < visible; ++i) scores[i] = 0;
    return 0;
  }
  const V shift = set(hn::ReduceMax(d, most));
  V sum = hn::Zero(d);
  for (size_t i = 0; i < visible; i += lanes) {
    const size_t count = visible - i < lanes ? visible - i : lanes;
    const V e = exp(hn::Sub(hn::LoadN(d, scores + i, count), shift));
    hn::StoreN(e, d, scores + i, count);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(d, count), e));
  }
  return hn::ReduceSum(d, sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

HWY_EXPORT(attention_weights);

struct Extent {
  int64_t batch, heads, groups, queries, keys, key_size, value_size;
};
Extent extent(const OpCall& call) {
  const TensorView &q = call.in(0), &k = call.in(1), &v = call.in(2);
  return {q.dims[0], q.dims[1], k.dims[1], q.dims[2], k.dims[2], q.dims[3], v.dims[3]};
}

// Floats of one group's packed keys and values, and of all groups'.
struct Packed {
  int64_t keys = 0, values = 0, all = 0;
};
[[nodiscard]] bool packed_of(const Extent& e, Packed* p) {
  return packed_floats(e.keys, e.key_size, &p->keys) && packed_floats(e.value_size, e.keys, &p->values) &&
         checked_add(p->keys, p->values, &p->all) && checked_mul(p->all, e.batch, &p->all) &&
         checked_mul(p->all, e.groups, &p->all);
}

Status workspace(const OpCall& call, int threads, size_t* bytes) {
  const Extent e = extent(call);
  Packed p;
  int64_t scores = 0;
  SINTER_RETURN_UNLESS(packed_of(e, &p) && checked_mul(kRowTile, e.keys, &scores) &&
                           checked_mul<int64_t>(scores, std::max(threads, 1), &scores) &&
                           checked_add(scores, p.all, &scores) &&
                           checked_mul<int64_t>(scores, sizeof(float), &scores),
                       too_much_workspace());
  *bytes = static_cast<size_t>(scores);
  return ok_status();
}

// Byte-free strides of the bias over [batch, heads, queries, keys], 0 where it is broadcast.
void bias_strides(const TensorView& bias, int64_t (&step)[4]) {
  int64_t size = 1;
  for (int i = 3; i >= 0; --i) {
    const int own = i - (4 - bias.rank);
    step[i] = own < 0 || bias.dims[own] == 1 ? 0 : size;
    if (own >= 0) size *= bias.dims[own];
  }
}

// A result of a query that is not finite, from the weights of its visible keys; the values are `step` floats
// apart. A key of weight 0 takes no part by rule kHides.
float add_visible(const float* weights, int64_t visible, const float* values, int64_t step,
                  AttentionRule rule) {
  float sum = 0;
  for (int64_t j = 0; j < visible; ++j)
    if (weights[j] != 0 || rule != AttentionRule::kHides) sum += weights[j] * values[j * step];
  return sum;
}

// Queries first .. first + rows - 1 of one head; `scores` holds rows * keys floats.
void attend(const OpCall& call, const Extent& e, int64_t batch, int64_t head, int64_t first, int64_t rows,
            const float* keys, const float* values, float* scores) {
  const auto& a = call.attrs<AttentionAttrs>();
  const int64_t q = (batch * e.heads + head) * e.queries + first;
  Gemm s;
  s.a = call.in(0).as<const float>() + q * e.key_size, s.a_stride = e.key_size, s.b = keys;
  s.rows = rows, s.columns = e.keys, s.depth = e.key_size, s.y = scores, s.y_stride = e.keys;
  gemm_columns(s, 0, e.keys);
  const float* bias = call.has_input(3) ? call.in(3).as<const float>() : nullptr;
  int64_t step[4] = {};
  if (bias != nullptr) bias_strides(call.in(3), step);
  const auto rule = static_cast<AttentionRule>(a.rule);
  float sums[kRowTile];
  const auto visible_of = [&](int64_t r) {
    return a.causal != 0 ? std::clamp<int64_t>(first + r + (e.keys - e.queries) + 1, 0, e.keys) : e.keys;
  };
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t query = first + r, visible = visible_of(r);
    const float* row = bias != nullptr ? bias + batch * step[0] + head * step[1] + query * step[2] : nullptr;
    sums[r] = HWY_DYNAMIC_DISPATCH(attention_weights)(
        scores + r * e.keys, static_cast<size_t>(visible), static_cast<size_t>(e.keys),
        static_cast<float>(a.scale), row, static_cast<size_t>(step[3]), rule);
  }
  Gemm y;
  y.a = scores, y.a_stride = e.keys, y.b = values, y.rows = rows, y.columns = e.value_size, y.depth = e.keys;
  y.y = call.out(0).as<float>() + q * e.value_size, y.y_stride = e.value_size;
  gemm_columns(y, 0, e.value_size);
  const bool hides = a.causal != 0 || (bias != nullptr && rule == AttentionRule::kHides);
  const float* own =
      call.in(2).as<const float>() + (batch * e.groups + head / (e.heads / e.groups)) * e.keys * e.value_size;
  for (int64_t r = 0; r < rows; ++r) {
    float* to = y.y + r * e.value_size;
    for (int64_t d = 0; hides && d < e.value_size; ++d)
      if (!std::isfinite(to[d]))
        to[d] = add_visible(scores + r * e.keys, visible_of(r), own + d, e.value_size, rule);
    const float inverse = 1.0f / sums[r];
    const bool zeros = (rule == AttentionRule::kHides && sums[r] == 0.0f) ||
                       (rule == AttentionRule::kAddsNanToZero && std::isnan(sums[r]));
    for (int64_t d = 0; d < e.value_size; ++d) to[d] = zeros ? 0.0f : to[d] * inverse;
  }
}

Status run(const OpCall& call, RunContext& context) {
  const Extent e = extent(call);
  Packed p;
  if (call.out(0).size() == 0 || !packed_of(e, &p)) return ok_status();
  auto* packed = reinterpret_cast<float*>(context.workspace.data());
  const int64_t each = p.keys + p.values, width = panel_width();
  parallel_for(context.threads, e.batch * e.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      pack_panels(call.in(1).as<const float>() + g * e.keys * e.key_size, 1, e.key_size, e.keys, e.key_size,
                  e.key_size, packed + g * each, 0, divide_up(e.keys, width));
      pack_panels(call.in(2).as<const float>() + g * e.keys * e.value_size, e.value_size, 1, e.value_size,
                  e.keys, e.keys, packed + g * each + p.keys, 0, divide_up(e.value_size, width));
    }
  });
  const int64_t tiles = divide_up(e.queries, kRowTile), units = e.batch * e.heads * tiles;
  const int64_t threads = threads_of(context.threads);
  const int64_t slots = std::min(units, std::max<int64_t>(threads, 1));
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % tiles * kRowTile, head = unit / tiles % e.heads,
                    batch = unit / tiles / e.heads;
      const float* keys = packed + (batch * e.groups + head / (e.heads / e.groups)) * each;
      attend(call, e, batch, head, first, std::min(kRowTile, e.queries - first), keys, keys + p.keys,
             packed + p.all + slot * kRowTile * e.keys);
    }
  });
  return ok_status();
}

}  // namespace

const Kernel kAttentionKernel = {Op::kAttention, nullptr, workspace, run, accept_float_dense};

}  // namespace sinter::simd
#endif  // HWY_ONCE
