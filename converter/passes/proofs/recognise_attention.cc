// recognise-attention: softmax(scale * q k' + bias) v, written as two products and a softmax, becomes
// Attention.
//
// Masks come in three ways, and each has its rule (AttentionRule), so that a query of which every key is
// masked gives what the model gives: NaN for -inf, equal weights for large finite numbers, or the zeros that
// the model specifies.
//   added      scores + bias                            kAdds
//   replacing  Where(mask, scores, -1e9)                kReplaces, with the bias Where(mask, 0, -1e9)
//   repaired   Where(IsNaN(weights), 0, weights)        kAddsNanToZero
//   blind      Where(max of bias == -inf, 0, weights)   kHides
// Scores may be capped before they are masked: cap * tanh(scale / cap * q k'). A column of sinks may be
// joined to them, whose weight is dropped (attention_sinks.h).
#include <cmath>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "converter/passes/proofs/attention_padding.h"
#include "converter/passes/proofs/attention_scores.h"
#include "converter/passes/proofs/attention_sinks.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

namespace {

// Returns the rows [B, H, N, D], or [B * H, N, D], whose transpose `id` [B, H, D, N] is; kAbsent: it is none.
ValueId untransposed(Editor& e, ValueId id) {
  const Dims& d = e.value(id).dims;
  int turned = e.made_by<TransposeAttrs>(id);
  if (turned >= 0)
    return e.node(turned).as<TransposeAttrs>()->perm == IntList{0, 1, 3, 2} ? e.node(turned).inputs[0]
                                                                            : kAbsent;
  const int view = e.made_by<ViewAttrs>(id);
  turned = view < 0 ? -1 : e.made_by<TransposeAttrs>(e.node(view).inputs[0]);
  if (turned < 0 || e.node(turned).as<TransposeAttrs>()->perm != IntList{0, 2, 1}) return kAbsent;
  const ValueId rows = e.node(turned).inputs[0];
  return e.value(rows).dims == Dims{d[0] * d[1], d[3], d[2]} ? rows : kAbsent;
}

// Returns keys or values [B, G, N, D] that are each repeated for H / G heads in a row in `all` = [B, H, N,
// D], of which `id` is a view, or a view of one; kAbsent: `id` is something else.
ValueId repeated_rows(Editor& e, ValueId id, const Dims& all) {
  int joined = e.made_by<ViewAttrs>(id);
  if (joined >= 0 && e.made_by<ViewAttrs>(e.node(joined).inputs[0]) >= 0)
    joined = e.made_by<ViewAttrs>(e.node(joined).inputs[0]);
  const int repeat = joined < 0 ? -1 : e.made_by<BroadcastAttrs>(e.node(joined).inputs[0]);
  const int apart = repeat < 0 ? -1 : e.made_by<ViewAttrs>(e.node(repeat).inputs[0]);
  if (apart < 0) return kAbsent;
  const ValueId rows = e.node(apart).inputs[0];
  const Dims &each = e.value(e.node(repeat).outputs[0]).dims, &once = e.value(e.node(apart).outputs[0]).dims,
             &own = e.value(rows).dims;
  if (own.size() != 4 || own[1] == 0 || e.value(rows).dtype != e.value(id).dtype) return kAbsent;
  const bool same = once == Dims{own[0], own[1], 1, own[2], own[3]} &&
                    each == Dims{own[0], own[1], all[1] / own[1], own[2], own[3]} &&
                    all == Dims{own[0], each[1] * each[2], own[2], own[3]};
  return same ? rows : kAbsent;
}

// Reads the rows that are repeated instead, where keys and values both are.
void share_rows(Editor& e, Scores* s, ValueId* v) {
  const Dims d = e.value(s->k).dims;
  const ValueId k = s->k_is_transposed ? untransposed(e, s->k) : s->k;
  if (k == kAbsent) return;
  const ValueId keys = repeated_rows(e, k, s->k_is_transposed ? Dims{d[0], d[1], d[3], d[2]} : d),
                values = repeated_rows(e, *v, e.value(*v).dims);
  if (keys == kAbsent || values == kAbsent || e.value(keys).dims[1] != e.value(values).dims[1]) return;
  s->k = keys, s->k_is_transposed = false, *v = values;
}

// Rows are keys or values, and the scales of their rows where they are int8.
struct Rows {
  ValueId rows, scales = kAbsent;
};
// Returns the rows that `id` is widened from, if they have 16 or 8 bits: Attention widens those that exist
// itself.
Rows narrow_rows(Editor& e, ValueId id) {
  if (e.value(id).dtype != DType::kFloat32) return {id};
  if (const int cast = e.made_by<CastAttrs>(id); cast >= 0) {
    const ValueId rows = e.node(cast).inputs[0];
    const DType t = e.value(rows).dtype;
    return {t == DType::kFloat16 || t == DType::kBFloat16 || t == DType::kFloat8E4M3FN ? rows : id};
  }
  const int dequantize = e.made_by<DequantizeAttrs>(id);
  if (dequantize < 0 || e.node(dequantize).inputs.size() != 2) return {id};
  const auto& a = *e.node(dequantize).as<DequantizeAttrs>();
  const ValueId rows = e.node(dequantize).inputs[0];
  const int view = e.made_by<ViewAttrs>(e.node(dequantize).inputs[1]);
  const Dims& d = e.value(rows).dims;
  if (view < 0 || e.value(rows).dtype != DType::kInt8 || a.axis != 3 || a.block_size < 1 ||
      a.block_size < d[3])
    return {id};
  const ValueId scales = e.node(view).inputs[0];
  const bool fits =
      e.value(scales).dtype == DType::kFloat32 && e.value(scales).dims == Dims{d[0], d[1], d[2]};
  return fits ? Rows{rows, scales} : Rows{id};
}

// Adds the scales that rows have to operands of Attention.
void add_scales(std::vector<ValueId>* inputs, const Rows& keys, const Rows& values) {
  if (keys.scales == kAbsent && values.scales == kAbsent) return;
  inputs->resize(6, kAbsent);
  inputs->insert(inputs->end(), {keys.scales, values.scales});
  if (inputs->back() == kAbsent) inputs->pop_back();
}

// Returns the softmax over keys behind the weights, and what is done to them on their way; -1: something
// else.
int softmax_of(Editor& e, ValueId weights, AttentionRule* rule, ValueId* blind_bias) {
  int where = e.made_by<WhereAttrs>(weights), reads = 1;
  ValueId id = weights;
  if (where >= 0 && e.single_read(weights)) {
    const auto& in = e.node(where).inputs;
    if (e.uniform(in[1]) != 0.0) return -1;
    id = in[2];
    if (const int nan = e.made_by<ClassifyAttrs>(in[0]); nan >= 0) {
      if (e.node(nan).as<ClassifyAttrs>()->mask != kClassifyNan || e.node(nan).inputs[0] != id) return -1;
      *rule = AttentionRule::kAddsNanToZero;
      reads = 2;
    } else {
      const int equal = e.made_by<CompareAttrs>(in[0]);
      if (equal < 0 || e.node(equal).as<CompareAttrs>()->fn != static_cast<int64_t>(CompareFn::kEqual))
        return -1;
      const int most = e.made_by<ReduceAttrs>(e.node(equal).inputs[0]);
      if (most < 0 || e.uniform(e.node(equal).inputs[1]) != -kInfinity) return -1;
      const auto& reduce = *e.node(most).as<ReduceAttrs>();
      *blind_bias = e.node(most).inputs[0];
      if (reduce.fn != static_cast<int64_t>(ReduceFn::kMax) || reduce.keepdims == 0 ||
          reduce.axes.size() != 1 ||
          reduce.axes[0] + 1 != static_cast<int64_t>(e.value(*blind_bias).dims.size()))
        return -1;
      *rule = AttentionRule::kHides;
    }
  }
  const int n = e.made_by<SoftmaxAttrs>(id);
  if (n < 0 || e.reads(id) != reads || e.value(id).dims.size() != 4 || !same_dims(e.graph(), id, weights))
    return -1;
  const auto& a = *e.node(n).as<SoftmaxAttrs>();
  return a.axis == 3 && a.log == 0 ? n : -1;
}

void match(Editor& e, int n) {
  const auto* product = e.node(n).as<MatMulAttrs>();
  if (product == nullptr || product->transpose_a != 0 || product->transpose_b != 0) return;
  ValueId p = e.node(n).inputs[0], v = e.node(n).inputs[1], length = kAbsent;
  if (!e.single_read(p) || e.value(p).dtype != DType::kFloat32) return;
  // Weights, values and scores of keys that are padding are filled.
  auto weights = padded(e, p, 3, Fill::kZero);
  const auto values = padded(e, v, 2, Fill::kZero);
  if (weights.has_value() != values.has_value()) return;
  if (weights) {
    // The last one of lengths that are held against each other counts.
    length = weights->length;
    if (const auto twice = padded(e, weights->value, 3, Fill::kZero);
        twice && is_checked_from(e, length, twice->length))
      weights = twice;
    if (!is_checked_from(e, length, values->length) || !e.single_read(weights->value)) return;
    p = weights->value, v = values->value;
  }
  auto rule = AttentionRule::kAdds;
  ValueId blind_bias = kAbsent;
  const auto beside = scores_beside_sinks(e, p, length);
  const int softmax = beside ? -1 : softmax_of(e, p, &rule, &blind_bias);
  if (softmax < 0 && !beside) return;
  ValueId scored = beside ? beside->scores : e.node(softmax).inputs[0];
  if (length != kAbsent && !beside) {
    const auto filled = padded(e, scored, 3, Fill::kLowest);
    if (!filled || !is_checked_from(e, length, filled->length)) return;
    scored = filled->value;
  }
  auto s = find_scores(e, scored);
  if (!s) return;
  const ScoreTerm only = s->terms.size() == 1 ? s->terms[0] : ScoreTerm{};
  if (blind_bias != kAbsent && (only.bias != blind_bias || only.factor != 1)) return;
  // One head of keys and values may meet all of the queries.
  const int64_t heads = e.value(p).dims[1];
  const bool is_shared = e.value(s->k).dims.size() == 4 && e.value(s->k).dims[1] == 1;
  for (const ValueId id : {s->q, s->k, v}) {
    const Value& operand = e.value(id);
    if (operand.dims.size() != 4 || operand.dims[0] != e.value(p).dims[0] ||
        operand.dims[1] != (is_shared && id != s->q ? 1 : heads) || !operand.bounded_dims.empty())
      return;
  }
  share_rows(e, &*s, &v);
  ValueId bias = kAbsent;
  if (only.mask != kAbsent) {
    // A replaced score and the repair of NaN do not meet in one rule.
    if (rule != AttentionRule::kAdds || e.value(only.mask).dims.size() > 4) return;
    rule = AttentionRule::kReplaces;
    const ValueId none = e.constant(Constant::scalar(DType::kFloat32, 0)),
                  hidden = e.constant(Constant::scalar(DType::kFloat32, *e.uniform(only.hidden)));
    bias = e.insert(n, WhereAttrs{},
                    {only.mask, only.mask_hides ? hidden : none, only.mask_hides ? none : hidden});
    if (bias < 0) return;
  } else if (only.bias != kAbsent && only.factor == 1) {
    bias = only.bias;
  } else if (!s->terms.empty()) {
    bias = joined_terms(e, n, *s);
    if (bias < 0) return;
  }
  if (bias >= 0 && (e.value(bias).dims.size() > 4 || !e.value(bias).bounded_dims.empty())) return;
  // Without keys, products give zeros; without a bias, no rule differs.
  if (e.value(p).dims[3] == 0) return;
  if (bias == kAbsent && rule == AttentionRule::kAdds) rule = AttentionRule::kHides;
  const ValueId sinks = beside ? sinks_of_heads(e, n, *beside) : kAbsent;
  if (beside && sinks < 0) return;
  if (s->k_is_transposed) {
    const ValueId rows = untransposed(e, s->k);
    s->k = rows >= 0 && e.value(rows).dims.size() == 4 ? rows
                                                       : e.insert(n, TransposeAttrs{{0, 1, 3, 2}}, {s->k});
  }
  if (s->k < 0) return;
  Rows key_rows{s->k}, value_rows{v};
  if (length >= 0) key_rows = narrow_rows(e, s->k), value_rows = narrow_rows(e, v);
  std::vector<ValueId> inputs{s->q, key_rows.rows, value_rows.rows};
  if (bias >= 0 || length >= 0) inputs.push_back(bias);
  if (length >= 0) {
    const auto number = [&](int64_t i) { return e.constant(Constant::scalar_int(DType::kInt64, i)); };
    ValueId one = e.insert(n, MaxAttrs{}, {length, number(0)});
    if (one >= 0) one = e.insert(n, MinAttrs{}, {one, number(e.value(p).dims[3])});
    if (one >= 0) one = e.insert(n, ViewAttrs{IntList{1}, -1}, {one});
    inputs.push_back(one < 0 ? one : e.insert(n, BroadcastAttrs{IntList{e.value(p).dims[0]}}, {one}));
    if (inputs.back() < 0) return;
  }
  if (sinks != kAbsent) {
    inputs.resize(5, kAbsent);
    inputs.push_back(sinks);
  }
  add_scales(&inputs, key_rows, value_rows);
  e.replace(n, AttentionAttrs{s->scale, 0, static_cast<int64_t>(rule), s->cap}, inputs);
}

// Lets Attention of the model read keys and values once that are repeated for several heads.
void share_given_rows(Editor& e, int n) {
  const auto* given = e.node(n).as<AttentionAttrs>();
  std::vector<ValueId> inputs = e.node(n).inputs;
  const bool has_scales = inputs.size() > 6;
  if (given == nullptr || has_scales) return;
  const ValueId keys = repeated_rows(e, inputs[1], e.value(inputs[1]).dims),
                values = repeated_rows(e, inputs[2], e.value(inputs[2]).dims);
  if (keys == kAbsent || values == kAbsent || e.value(keys).dims[1] != e.value(values).dims[1]) return;
  const bool has_lengths = inputs.size() > 4 && inputs[4] != kAbsent;
  const Rows key_rows = has_lengths ? narrow_rows(e, keys) : Rows{keys},
             value_rows = has_lengths ? narrow_rows(e, values) : Rows{values};
  inputs[1] = key_rows.rows, inputs[2] = value_rows.rows;
  add_scales(&inputs, key_rows, value_rows);
  e.replace(n, AttentionAttrs(*given), inputs);
}

}  // namespace

int recognise_attention(Graph& graph) {
  int changes = raise_attention(graph);
  Editor e(graph);
  for (int n = 0; n < e.size(); ++n) match(e, n), share_given_rows(e, n);
  changes += e.commit();
  return changes + limit_to_live_keys(graph);
}

}  // namespace sinter::convert
