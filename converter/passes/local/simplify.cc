// simplify: removes operations that change nothing, and replaces others by equivalent, cheaper ones. Results
// stay bit-identical, signs of zero included.
#include <cmath>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

// The operand that the operation hands on as it is, or kAbsent.
ValueId unchanged(Editor& e, const Node& node) {
  const ValueId x = node.inputs[0];
  const Value &in = e.value(x), &out = e.value(node.outputs[0]);
  if (node.as<CopyAttrs>() != nullptr) return x;
  if (const auto* c = node.as<CastAttrs>()) return static_cast<DType>(c->to) == in.dtype ? x : kAbsent;
  if (const auto* c = node.as<ClampAttrs>()) return c->min == -kInfinity && c->max == kInfinity ? x : kAbsent;
  if (node.as<ConcatAttrs>() != nullptr) return node.inputs.size() == 1 ? x : kAbsent;
  if (node.as<TileAttrs>() != nullptr || node.as<BroadcastAttrs>() != nullptr ||
      node.as<PadAttrs>() != nullptr)
    return in.dims == out.dims ? x : kAbsent;
  if (const auto* s = node.as<SliceAttrs>()) {
    for (int i = 0; i < s->starts.size(); ++i)
      if (s->starts[i] != 0 || (s->steps[i] != 1 && s->sizes[i] > 1)) return kAbsent;
    return in.dims == out.dims ? x : kAbsent;
  }
  if (!is_wide_float(out.dtype)) return kAbsent;
  // x * 1, x / 1, x - 0; x + 0 would turn -0 into 0, but x + (-0) is x.
  const auto is = [&](size_t operand, double v) {
    const auto c = e.uniform(node.inputs[operand]);
    return c && *c == v && std::signbit(*c) == std::signbit(v) &&
           same_dims(e.graph(), node.inputs[1 - operand], node.outputs[0]);
  };
  if (unclamped(node.as<MulAttrs>())) return is(1, 1.0) ? x : is(0, 1.0) ? node.inputs[1] : kAbsent;
  if (unclamped(node.as<DivAttrs>())) return is(1, 1.0) ? x : kAbsent;
  if (unclamped(node.as<SubAttrs>())) return is(1, 0.0) ? x : kAbsent;
  if (unclamped(node.as<AddAttrs>())) return is(1, -0.0) ? x : is(0, -0.0) ? node.inputs[1] : kAbsent;
  return kAbsent;
}

// Never negative nor -0 (NaN aside).
bool not_negative(Editor& e, ValueId id, int depth = 4) {
  const int n = e.producer(id);
  if (n < 0 || depth == 0) {
    const auto c = e.uniform(id);
    return c && *c >= 0 && !std::signbit(*c);
  }
  const Node& node = e.node(n);
  if (unclamped(node.as<MulAttrs>())) return node.inputs[0] == node.inputs[1];
  if (node.as<AbsAttrs>() != nullptr || node.as<ExpAttrs>() != nullptr) return true;
  if (node.as<PowAttrs>() != nullptr) return e.uniform(node.inputs[1]) == 2.0;
  if (unclamped(node.as<AddAttrs>()))
    return not_negative(e, node.inputs[0], depth - 1) && not_negative(e, node.inputs[1], depth - 1);
  if (const auto* r = node.as<ReduceAttrs>()) return r->fn <= 1 && not_negative(e, node.inputs[0], depth - 1);
  return false;
}

// 1 / c where that is exact for every element.
ConstantPtr exact_reciprocal(const Value& v) {
  if (!v.constant || !is_wide_float(v.dtype) || v.constant->size() > 65536) return nullptr;
  std::vector<double> items = v.constant->as_doubles();
  for (double& item : items) {
    int exponent = 0;
    if (!std::isfinite(item) || std::fabs(std::frexp(item, &exponent)) != 0.5 || std::abs(exponent) > 100)
      return nullptr;
    item = 1 / item;
  }
  return real_constant(v.dtype, v.dims, items);
}

// Do constant indices name every place of the first axes of `dims` once, in their order?
bool names_all_in_order(const Value& indices, const Dims& dims) {
  constexpr int64_t kMostIndices = int64_t{1} << 22;
  const Dims& shape = indices.dims;
  if (!indices.constant || shape.empty() || indices.constant->size() > kMostIndices) return false;
  const auto axes = static_cast<size_t>(shape.back());
  if (axes == 0 || axes > dims.size()) return false;
  const std::vector<int64_t> numbers = indices.constant->as_int64s();
  const size_t count = numbers.size() / axes;
  if (static_cast<int64_t>(count) !=
      element_count(Dims(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(axes))))
    return false;
  for (size_t i = 0; i < count; ++i) {
    auto left = static_cast<int64_t>(i);
    for (size_t axis = axes; axis-- > 0; left /= dims[axis]) {
      const int64_t number = numbers[i * axes + axis];
      if ((number < 0 ? number + dims[axis] : number) != left % dims[axis]) return false;
    }
  }
  return true;
}

// Rows of one of two tables: gathered from both rather than from a copy of the one.
void gather_before_choice(Editor& e, int n, const GatherAttrs attrs) {
  const ValueId table = e.node(n).inputs[0], index = e.node(n).inputs[1], rows = e.node(n).outputs[0];
  const int choice = e.made_by<WhereAttrs>(table);
  if (choice < 0) return;
  const std::vector<ValueId> operands = e.node(choice).inputs;
  const Dims& condition = e.value(operands[0]).dims;
  if (element_count(condition) != 1 || condition.size() > e.value(rows).dims.size() ||
      2 * element_count(e.value(rows).dims) > element_count(e.value(table).dims))
    return;
  for (size_t i = 1; i < 3; ++i)
    if (e.value(operands[i]).constant == nullptr || !same_dims(e.graph(), operands[i], table)) return;
  const ValueId yes = e.insert(n, attrs, {operands[1], index}), no = e.insert(n, attrs, {operands[2], index});
  if (yes >= 0 && no >= 0) e.replace(n, WhereAttrs{}, {operands[0], yes, no});
}

void cheaper(Editor& e, int n) {
  const Node& node = e.node(n);
  if (const auto* gather = node.as<GatherAttrs>()) return gather_before_choice(e, n, *gather);
  if (const auto* gather = node.as<GatherNdAttrs>()) {
    const Value &from = e.value(node.inputs[0]), &index = e.value(node.inputs[1]),
                &to = e.value(node.outputs[0]);
    if (gather->batch_dims != 0 || !from.bounded_dims.empty() || !index.bounded_dims.empty() ||
        !to.bounded_dims.empty())
      return;
    if (names_all_in_order(index, from.dims)) {
      e.replace(n, ViewAttrs{IntList(std::span<const int64_t>(to.dims)), -1}, {node.inputs[0]});
    } else if (index.dims.back() == 1 && from.dims.size() > 1) {
      // Whole rows.
      const Dims places(index.dims.begin(), index.dims.end() - 1);
      const ValueId rows = node.inputs[0];
      const ValueId place =
          e.insert(n, ViewAttrs{IntList(std::span<const int64_t>(places)), -1}, {node.inputs[1]});
      if (place >= 0) e.replace(n, GatherAttrs{0}, {rows, place});
    }
    return;
  }
  if (node.as<PowAttrs>() != nullptr && is_wide_float(e.value(node.inputs[0]).dtype) &&
      same_dims(e.graph(), node.inputs[0], node.outputs[0])) {
    const ValueId x = node.inputs[0];
    const auto exponent = e.uniform(node.inputs[1]);
    if (exponent == 2.0)
      e.replace(n, MulAttrs{}, {x, x});
    else if (exponent == 0.5 && not_negative(e, x))
      e.replace(n, SqrtAttrs{}, {x});
    return;
  }
  if (unclamped(node.as<DivAttrs>())) {
    if (const ConstantPtr c = exact_reciprocal(e.value(node.inputs[1])))
      e.replace(n, MulAttrs{}, {node.inputs[0], e.constant(c)});
    return;
  }
  if (const auto* outer = node.as<SliceAttrs>()) {
    const int before = e.made_by<SliceAttrs>(node.inputs[0]);
    if (before < 0 || !e.value(node.inputs[0]).bounded_dims.empty()) return;
    const SliceAttrs& inner = *e.node(before).as<SliceAttrs>();
    SliceAttrs both = *outer;
    for (int i = 0; i < both.starts.size(); ++i) {
      both.starts[i] = inner.starts[i] + outer->starts[i] * inner.steps[i];
      both.steps[i] = outer->steps[i] * inner.steps[i];
    }
    e.replace(n, both, {e.node(before).inputs[0]});
    return;
  }
  // A product with a matrix transposed just for it.
  if (const auto* mm = node.as<MatMulAttrs>()) {
    const int t = e.made_by<TransposeAttrs>(node.inputs[1]);
    if (t < 0 || !e.single_read(node.inputs[1])) return;
    const IntList& perm = e.node(t).as<TransposeAttrs>()->perm;
    const int rank = perm.size();
    for (int i = 0; i + 2 < rank; ++i)
      if (perm[i] != i) return;
    if (perm[rank - 1] != rank - 2) return;
    e.replace(n, MatMulAttrs{mm->transpose_a, mm->transpose_b == 0 ? 1 : 0},
              {node.inputs[0], e.node(t).inputs[0]});
  }
}

int sweep(Graph& graph) {
  Editor e(graph);
  return e.sweep([&](int n) {
    const Node& node = e.node(n);
    if (node.inputs.empty() || node.inputs[0] < 0 || node.outputs.size() != 1 || !node.bodies.empty()) return;
    const ValueId same = unchanged(e, node);
    if (same < 0) {
      cheaper(e, n);
    } else if (e.value(same).bounded_dims == e.value(node.outputs[0]).bounded_dims) {
      e.bypass(n, same);
    }
  });
}

}  // namespace

int simplify(Graph& graph) { return until_stable(graph, sweep); }

}  // namespace sinter::convert
