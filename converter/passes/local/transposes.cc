// transposes: merges consecutive Transposes and Views, also Transposes with a View between them that divides
// axes, removes those that do nothing, and turns a Transpose that moves only axes of size 1 into a View.
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

IntList as_list(const Dims& dims) { return IntList(std::span<const int64_t>(dims)); }

bool identity(const IntList& perm) {
  for (int i = 0; i < perm.size(); ++i)
    if (perm[i] != i) return false;
  return true;
}

// A value without a name is the ONNX value that it is turned into, with its axes in another order.
void hand_on_name(Graph& graph, const TransposeAttrs& t, ValueId from, ValueId to) {
  if (graph.is_constant(from) || graph.is_output(to)) return;
  Value& x = graph.value(from);
  const Value& y = graph.value(to);
  if (!x.name.empty() || y.name.empty()) return;
  x.name = y.name;
  x.model_dtype = y.model_dtype;
  x.order.assign(x.dims.size(), 0);
  for (int i = 0; i < t.perm.size(); ++i)
    x.order[static_cast<size_t>(t.perm[i])] = y.order.empty() ? i : y.order[static_cast<size_t>(i)];
}

// How many of the axes of `out` each axis of `in` is divided into, one after the other; empty: some are
// joined.
std::vector<size_t> divided_into(const Dims& in, const Dims& out) {
  std::vector<size_t> counts;
  size_t at = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t first = at;
    int64_t product = 1;
    while (at < out.size() && (at == first || product != in[i])) product *= out[at++];
    if (product != in[i]) return {};
    counts.push_back(at - first);
  }
  while (at < out.size() && out[at] == 1 && !counts.empty()) ++at, ++counts.back();
  return at == out.size() ? counts : std::vector<size_t>{};
}

// Node n, a Transpose of a View of a Transpose: the axes are divided first and moved at once.
bool divide_first(Editor& e, int n) {
  const ValueId x = e.node(n).inputs[0];
  const int view = e.made_by<ViewAttrs>(x);
  if (view < 0 || e.node(view).as<ViewAttrs>()->dtype >= 0 || !e.single_read(x)) return false;
  const int before = e.made_by<TransposeAttrs>(e.node(view).inputs[0]);
  if (before < 0) return false;
  const ValueId z = e.node(before).inputs[0];
  const Dims &moved = e.value(e.node(view).inputs[0]).dims, &out = e.value(x).dims;
  if (!e.value(z).bounded_dims.empty() || !e.value(x).bounded_dims.empty() || element_count(out) == 0)
    return false;
  const std::vector<size_t> counts = divided_into(moved, out);
  if (counts.empty() || out.size() > static_cast<size_t>(kMaxRank)) return false;
  const IntList& inner = e.node(before).as<TransposeAttrs>()->perm;
  std::vector<size_t> starts(counts.size(), 0);  // of each axis of `moved` in `out`
  for (size_t j = 1; j < counts.size(); ++j) starts[j] = starts[j - 1] + counts[j - 1];
  Dims divided;
  std::vector<int64_t> place(out.size());  // of each axis of `out` in `divided`
  for (int64_t axis = 0; axis < static_cast<int64_t>(counts.size()); ++axis)
    for (size_t j = 0; j < counts.size(); ++j) {
      if (inner[static_cast<int>(j)] != axis) continue;
      for (size_t k = starts[j]; k < starts[j] + counts[j]; ++k) {
        place[k] = static_cast<int64_t>(divided.size());
        divided.push_back(out[k]);
      }
    }
  IntList perm;
  for (const int64_t p : e.node(n).as<TransposeAttrs>()->perm) perm.push(place[static_cast<size_t>(p)]);
  const ValueId y = e.insert(n, ViewAttrs{as_list(divided)}, {z});
  if (y < 0) return false;
  e.replace(n, TransposeAttrs{perm}, {y});
  return true;
}

int sweep_transposes(Graph& graph) {
  Editor e(graph);
  return e.sweep([&](int n) {
    Node& node = e.node(n);
    const auto* t = node.as<TransposeAttrs>();
    const auto* view = node.as<ViewAttrs>();
    if (t == nullptr && view == nullptr) return;
    if (!e.value(node.outputs[0]).bounded_dims.empty()) return;
    const ValueId x = node.inputs[0];
    if (graph.is_constant(x) && t != nullptr && !graph.is_output(node.outputs[0])) {
      const ValueId folded = e.insert(n, *t, {x});
      if (folded >= 0 && graph.is_constant(folded)) e.bypass(n, folded);
      return;
    }
    if (t != nullptr) {
      if (divide_first(e, n)) return;
      hand_on_name(graph, *t, x, node.outputs[0]);
      if (const int before = e.made_by<TransposeAttrs>(x); before >= 0) {
        const IntList& inner = e.node(before).as<TransposeAttrs>()->perm;
        IntList both;
        for (const int64_t p : t->perm) both.push(inner[static_cast<int>(p)]);
        e.replace(n, TransposeAttrs{both}, {e.node(before).inputs[0]});
        t = node.as<TransposeAttrs>();
      }
      if (identity(t->perm))
        e.bypass(n, node.inputs[0]);
      else if (moves_only_ones(t->perm, e.value(node.inputs[0]).dims))
        e.replace(n, ViewAttrs{as_list(e.value(node.outputs[0]).dims)}, {node.inputs[0]});
      return;
    }
    if (const int before = e.made_by<ViewAttrs>(x);
        before >= 0 && (view->dtype < 0 || e.value(x).dtype == e.value(e.node(before).inputs[0]).dtype) &&
        e.node(before).as<ViewAttrs>()->dtype < 0 && e.value(x).bounded_dims.empty()) {
      const ViewAttrs joined{view->dims, view->dtype};
      e.replace(n, joined, {e.node(before).inputs[0]});
    }
    const Value &in = e.value(node.inputs[0]), &out = e.value(node.outputs[0]);
    if (in.dims == out.dims && in.dtype == out.dtype && in.bounded_dims.empty()) e.bypass(n, node.inputs[0]);
  });
}

}  // namespace

int simplify_transposes(Graph& graph) { return until_stable(graph, sweep_transposes); }

}  // namespace sinter::convert
