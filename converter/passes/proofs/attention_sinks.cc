#include "converter/passes/proofs/attention_sinks.h"

#include <algorithm>

#include "converter/passes/proofs/attention_padding.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Offset is an int64 scalar that is known but for a value: base + offset.
struct Offset {
  ValueId base = kAbsent;
  int64_t offset = 0;
};
Offset offset_of(Editor& e, ValueId id) {
  Offset r{id};
  for (int n; (n = e.producer(r.base)) >= 0;) {
    const Node& node = e.node(n);
    if (node.op() == Op::kView) {
      r.base = node.inputs[0];
      continue;
    }
    if (!unclamped(node.as<AddAttrs>())) break;
    const auto is_number = [&](ValueId v) { return e.value(v).constant && e.value(v).constant->size() == 1; };
    const size_t side = is_number(node.inputs[0]) ? 0 : 1;
    if (!is_number(node.inputs[side])) break;
    r.offset += e.value(node.inputs[side]).constant->as_int64s()[0];
    r.base = node.inputs[1 - side];
  }
  return r;
}

// Returns the x of x - max(x) along the last axis, which changes no weight, or else `id`.
ValueId before_shift(Editor& e, ValueId id, ValueId length) {
  const int sub = e.made_by<SubAttrs>(id);
  if (sub < 0 || !unclamped(e.node(sub).as<SubAttrs>()) || !e.single_read(id)) return id;
  const ValueId x = e.node(sub).inputs[0];
  const int most = e.made_by<ReduceAttrs>(e.node(sub).inputs[1]);
  if (most < 0) return id;
  const auto& reduce = *e.node(most).as<ReduceAttrs>();
  const auto last = static_cast<int64_t>(e.value(x).dims.size()) - 1;
  if (reduce.fn != static_cast<int64_t>(ReduceFn::kMax) || reduce.keepdims == 0 ||
      reduce.axes != IntList{last})
    return id;
  ValueId of = e.node(most).inputs[0];
  if (length != kAbsent) {
    const auto filled = padded(e, of, static_cast<size_t>(last), Fill::kLowest);
    if (!filled || filled->length != length) return id;
    of = filled->value;
  }
  return of == x ? x : id;
}

}  // namespace

std::optional<BesideSinks> scores_beside_sinks(Editor& e, ValueId weights, ValueId length) {
  const int cut = e.made_by<SliceAttrs>(weights);
  if (cut < 0 || !e.single_read(weights)) return std::nullopt;
  const ValueId all = e.node(cut).inputs[0];
  const int softmax = e.made_by<SoftmaxAttrs>(all);
  const Dims &kept = e.value(weights).dims, &whole = e.value(all).dims;
  if (softmax < 0 || !e.single_read(all) || whole.size() != 4 ||
      whole != Dims{kept[0], kept[1], kept[2], kept[3] + 1} ||
      e.node(cut).as<SliceAttrs>()->starts != IntList{0, 0, 0, 0} ||
      e.node(cut).as<SliceAttrs>()->steps != IntList{1, 1, 1, 1} ||
      e.node(softmax).as<SoftmaxAttrs>()->axis != 3 || e.node(softmax).as<SoftmaxAttrs>()->log != 0)
    return std::nullopt;
  ValueId x = e.node(softmax).inputs[0], longer = kAbsent;
  if (length != kAbsent) {
    const auto filled = padded(e, x, 3, Fill::kLowest);
    if (!filled) return std::nullopt;
    const Offset one = offset_of(e, length), more = offset_of(e, filled->length);
    if (one.base != more.base || one.offset + 1 != more.offset) return std::nullopt;
    x = filled->value, longer = filled->length;
  }
  x = before_shift(e, x, longer);
  if (length != kAbsent) {
    // The sink is moved behind the keys that exist.
    const int moved = e.made_by<GatherAttrs>(x);
    if (moved < 0 || e.node(moved).as<GatherAttrs>()->axis != 3) return std::nullopt;
    ValueId places = e.node(moved).inputs[1];
    for (int view; (view = e.made_by<ViewAttrs>(places)) >= 0;) places = e.node(view).inputs[0];
    const int found = e.producer(places);
    if (found < 0 || e.node(found).op() != Op::kNonZero || e.node(found).outputs[0] != places)
      return std::nullopt;
    const int used = e.made_by<ConcatAttrs>(e.node(found).inputs[0]);
    if (used < 0 || e.node(used).inputs.size() != 2 || counted(e, e.node(used).inputs[0], kept[3]) != length)
      return std::nullopt;
    const ConstantPtr& last = e.value(e.node(used).inputs[1]).constant;
    if (!last || last->size() != 1 || last->as_int64s()[0] == 0) return std::nullopt;
    x = e.node(moved).inputs[0];
  }
  const int join = e.made_by<ConcatAttrs>(x);
  if (join < 0 || e.node(join).as<ConcatAttrs>()->axis != 3 || e.node(join).inputs.size() != 2)
    return std::nullopt;
  const BesideSinks s{e.node(join).inputs[0], e.node(join).inputs[1], kept[1]};
  if (e.value(s.scores).dims != kept || e.value(s.sinks).dims.size() != 4 ||
      e.value(s.sinks).dtype != e.value(weights).dtype)
    return std::nullopt;
  return s;
}

ValueId sinks_of_heads(Editor& e, int n, const BesideSinks& s) {
  const IntList heads{s.heads};
  const Dims& dims = e.value(s.sinks).dims;
  if (const ConstantPtr& c = e.value(s.sinks).constant) {
    // [B, H, M, 1]
    const std::vector<double> all = c->as_doubles();
    std::vector<float> of_heads;
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t row = i / static_cast<size_t>(dims[2]), head = row % static_cast<size_t>(dims[1]);
      if (row == head && i % static_cast<size_t>(dims[2]) == 0)
        of_heads.push_back(static_cast<float>(all[i]));
      if (head >= of_heads.size() || static_cast<double>(of_heads[head]) != all[i]) return kAbsent;
    }
    if (c->dtype() != DType::kFloat32 || static_cast<int64_t>(of_heads.size()) != s.heads) return kAbsent;
    return e.constant(Constant::of<float>(DType::kFloat32, {s.heads}, of_heads));
  }
  const int repeat = e.made_by<BroadcastAttrs>(s.sinks);
  const ValueId once = repeat < 0 ? s.sinks : e.node(repeat).inputs[0];
  const Dims& own = e.value(once).dims;
  if (element_count(own) != s.heads || own.size() < 3 || own[own.size() - 3] != s.heads) return kAbsent;
  return e.insert(n, ViewAttrs{heads, -1}, {once});
}

}  // namespace sinter::convert
