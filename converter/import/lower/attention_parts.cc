#include "converter/import/lower/attention_parts.h"

#include <algorithm>
#include <cmath>

#include "converter/import/lower/common.h"
#include "runtime/core/attention_rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

ValueId heads_apart(NodeLowering& n, ValueId v, int64_t heads) {
  if (v < 0) return v;
  const Dims d = n.dims(v);
  if (d.size() != 3 || heads < 1 || d[2] % heads != 0)
    return n.refuse_shapes("{} cannot be split into {} heads", to_string(d), heads);
  return n.transpose(n.reshape(v, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3});
}

ValueId heads_together(NodeLowering& n, ValueId v) {
  if (v < 0) return v;
  const Dims d = n.dims(v);
  return n.reshape(n.transpose(v, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

ValueId rotated(NodeLowering& n, ValueId x, ValueId cos, ValueId sin, ValueId positions, bool interleaved,
                int64_t heads_axis) {
  if (positions != kAbsent) {
    cos = n.emit(GatherAttrs{0}, {cos, positions});
    sin = n.emit(GatherAttrs{0}, {sin, positions});
  }
  if (x < 0 || cos < 0 || sin < 0) return kUnknown;
  if (n.rank(cos) != 3 || n.rank(sin) != 3)
    return n.refuse_shapes("the tables of cosines and sines have rank {}, not {}",
                           n.rank(cos) - (positions != kAbsent), positions != kAbsent ? 2 : 3);
  RopeAttrs a;
  a.interleaved = interleaved;
  if (const int64_t pairs = n.dims(cos)[2]; 2 * pairs != n.dims(x)[3]) a.rotary_dim = 2 * pairs;
  // Angles are not rounded to 16 bits.
  const DType t = n.dtype(x) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const auto table = [&](ValueId v) { return n.cast(n.unsqueeze(v, heads_axis), t); };
  return n.emit(a, {x, table(cos), table(sin)});
}

// ---- what may see what

void AttentionBias::set_offset(int64_t constant) {
  offset_ = n_.add_constant(Constant::of<int64_t>(DType::kInt64, {1, 1, 1, 1}, std::span(&constant, 1)));
}

void AttentionBias::set_offset(ValueId per_entry) { offset_ = n_.reshape(per_entry, {batch_, 1, 1, 1}); }

void AttentionBias::limit(bool has_left, int64_t left, bool has_right, int64_t right) {
  const ValueId position = n_.add(range(queries_, {1, 1, queries_, 1}), offset_);
  const ValueId distance = n_.sub(range(keys_, {1, 1, 1, keys_}), position);
  if (has_right) allow(n_.compare(CompareFn::kLessOrEqual, {distance, n_.int64(right)}));
  if (has_left) allow(n_.compare(CompareFn::kGreaterOrEqual, {distance, n_.int64(-left)}));
}

void AttentionBias::limit_to_valid(ValueId valid_keys) {
  allow(n_.compare(CompareFn::kLess,
                   {range(keys_, {1, 1, 1, keys_}), n_.reshape(valid_keys, {batch_, 1, 1, 1})}));
}

void AttentionBias::allow(ValueId mask) {
  add(n_.where({padded(mask), n_.scalar(type_, 0), n_.scalar(type_, -kInfinity)}));
}

void AttentionBias::add(ValueId bias) {
  bias = padded(bias);
  sum_ = sum_ == kAbsent ? bias : n_.add(sum_, bias);
}

ValueId AttentionBias::padded(ValueId mask) {
  const Dims d = n_.dims(mask);
  if (d.empty() || d.back() >= keys_ || d.back() == 1) return mask;
  Dims more = d;
  more.back() = keys_ - d.back();
  const DType t = n_.dtype(mask);
  const ValueId fill =
      n_.broadcast(n_.reshape(n_.scalar(t, t == DType::kBool ? 0 : -kInfinity), Dims(more.size(), 1)), more);
  return n_.emit(ConcatAttrs{static_cast<int64_t>(d.size()) - 1}, {mask, fill});
}

ValueId AttentionBias::range(int64_t count, const Dims& dims) {
  return n_.reshape(index_row(n_, count), dims);
}

// ---- one pass, or products and softmax

namespace {

bool check_operands(NodeLowering& n, ValueId q, ValueId k, ValueId v, const AttentionForm& form) {
  if (q < 0 || k < 0 || v < 0) return false;
  const Dims dq = n.dims(q), dk = n.dims(k), dv = n.dims(v);
  const int64_t of_item = holds_pairs(n.dtype(k)) ? 2 : 1;
  if (dq.size() != 4 || dk.size() != 4 || dv.size() != 4 || dk[0] != dq[0] || dv[0] != dq[0] ||
      dk[3] * of_item != dq[3] || dv[1] != dk[1] || dv[2] != dk[2] || dk[1] < 1 || dq[1] % dk[1] != 0)
    return n.refuse_shapes("Q {}, K {} and V {} do not fit", to_string(dq), to_string(dk), to_string(dv));
  return !std::isnan(form.scale) || n.refuse("scale is not a number");
}

}  // namespace

bool fits_one_pass(const AttentionForm& form) {
  // A score over a cap beyond that loses digits in float32.
  constexpr double kLargestCap = 1e15;
  return !form.in_float64 && !std::isnan(form.softcap) && form.softcap <= kLargestCap;
}

ValueId one_pass_attention(NodeLowering& n, ValueId q, ValueId k, ValueId v, const OnePassForm& form) {
  if (!check_operands(n, q, k, v, form)) return kUnknown;
  const DType t = n.dtype(q);
  AttentionAttrs a;
  a.scale = form.scale, a.causal = form.causal, a.window = form.window;
  a.rule = static_cast<int64_t>(AttentionRule::kHides);
  a.softcap = std::max(form.softcap, 0.0);
  std::vector<ValueId> operands{q, k, v, form.bias, form.lengths, form.sink};
  // A bias is not rounded to 16 bits.
  if (form.bias != kAbsent) operands[3] = n.cast(form.bias, t == DType::kFloat64 ? t : DType::kFloat32);
  if (form.sink != kAbsent) operands[5] = n.cast(form.sink, t);
  while (operands.back() == kAbsent) operands.pop_back();
  // `lengths` leaves padding out.
  return form.lengths == kAbsent ? n.emit(a, operands) : n.emit_padded(a, operands, {true})[0];
}

ValueId attention(NodeLowering& n, ValueId q, ValueId k, ValueId v, const AttentionForm& form,
                  AttentionScores* scores) {
  if (!check_operands(n, q, k, v, form)) return kUnknown;
  const Dims dq = n.dims(q), dk = n.dims(k), dv = n.dims(v);
  const int64_t batch = dq[0], heads = dq[1], queries = dq[2], size = dq[3], groups = dk[1], keys = dk[2];
  const DType t = n.dtype(q);
  const double root = std::sqrt(std::fabs(form.scale));
  q = n.mul(q, n.scalar(t, form.scale < 0 ? -root : root));
  k = n.mul(k, n.scalar(t, root));
  // Heads that share keys become an axis of their own, so that the product broadcasts over it.
  const int64_t shared = heads / groups;
  if (shared > 1) {
    q = n.reshape(q, {batch, groups, shared, queries, size});
    k = n.reshape(k, {batch, groups, 1, keys, size});
    v = n.reshape(v, {batch, groups, 1, keys, dv[3]});
  }
  AttentionScores s{};
  s.scaled = s.capped = n.reshape(n.emit(MatMulAttrs{0, 1}, {q, k}), {batch, heads, queries, keys});
  if (form.softcap > 0) {
    // The scores over the cap are computed in float64 where they would be denormals, or the type cannot hold
    // the cap.
    const DType wide = form.softcap > (t == DType::kFloat16 ? 6e4 : 1e15) ? DType::kFloat64 : t;
    const ValueId cap = n.scalar(wide, form.softcap);
    s.capped = n.cast(n.mul(n.emit(TanhAttrs{}, {n.div(n.cast(s.scaled, wide), cap)}), cap), t);
  }
  s.biased = form.bias == kAbsent ? s.capped : n.add(s.capped, form.bias);
  ValueId row = s.biased;
  if (form.sink != kAbsent) {
    const ValueId last =
        n.broadcast(n.reshape(form.sink, {1, n.size(form.sink), 1, 1}), {batch, heads, queries, 1});
    row = n.emit(ConcatAttrs{3}, {row, last});
  }
  const bool widened = form.in_float64 && t != DType::kFloat64;
  ValueId weights = n.emit(SoftmaxAttrs{3, 0}, {widened ? n.cast(row, DType::kFloat64) : row});
  if (form.sink != kAbsent) weights = n.slice(weights, 3, 0, keys);
  if (widened) weights = n.cast(weights, t);
  if (form.bias != kAbsent && form.sink == kAbsent) {
    ReduceAttrs best;
    best.fn = static_cast<int64_t>(ReduceFn::kMax);
    best.axes.push(n.rank(form.bias) - 1);
    const ValueId blind = n.compare(CompareFn::kEqual, {n.emit(best, {form.bias}), n.scalar(t, -kInfinity)});
    bool any = true;
    if (const ConstantPtr known = n.constant(blind)) {
      const std::vector<int64_t> items = known->as_int64s();
      any = std::any_of(items.begin(), items.end(), [](int64_t b) { return b != 0; });
    }
    if (any) weights = n.where({blind, n.scalar(t, 0), weights});
  }
  s.weights = weights;
  if (scores != nullptr) *scores = s;
  if (shared > 1) weights = n.reshape(weights, {batch, groups, shared, queries, keys});
  return n.reshape(n.emit(MatMulAttrs{}, {weights, v}), {batch, heads, queries, dv[3]});
}

}  // namespace sinter::convert
