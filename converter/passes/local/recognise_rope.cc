// recognise-rope: x cos + rotate(x) sin, where rotate swaps the halves of the last axis and negates one,
// becomes Rope. Exporters give cosines and sines for both halves; that the halves are alike must follow from
// the graph. Pairs of neighbours: recognise_pair_rope.cc; parts of rows: recognise_partial_rope.cc.
#include <map>

#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"
#include "converter/passes/proofs/equal_elements.h"

namespace sinter::convert {

namespace {

int64_t last_of(const Dims& dims) { return dims.empty() ? 0 : dims.back(); }

// Whether a Slice takes all rows of its operand, and of each row one half.
bool takes_half(const Graph& graph, const Node& slice, bool second) {
  const auto& a = *slice.as<SliceAttrs>();
  const Dims& dims = graph.value(slice.inputs[0]).dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int at = static_cast<int>(i);
    const bool last = i + 1 == dims.size();
    if (a.steps[at] != 1 || a.sizes[at] != (last ? dims[i] / 2 : dims[i]) ||
        a.starts[at] != (last && second ? dims[i] / 2 : 0))
      return false;
  }
  return true;
}

// Returns the first half of each row of cosines or sines, inserted before node n.
ValueId first_half(Editor& e, int n, ValueId id) {
  Dims sizes = e.value(id).dims;
  const Dims starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes.back() /= 2;
  return e.insert(n, SliceAttrs{IntList(starts), IntList(steps), IntList(sizes)}, {id});
}

int sweep_rope(Graph& graph) {
  Editor e(graph);
  Capture x, cos, sin;
  std::map<ValueId, bool> alike;  // by cosines and sines, which layers share
  const auto halves_alike = [&](ValueId id) {
    const auto [known, fresh] = alike.emplace(id, false);
    if (fresh) known->second = equal_halves(e, id);
    return known->second;
  };
  const auto half = [&](bool second) {
    return op<SliceAttrs>(x).where(
        [&graph, second](const Node& node) { return takes_half(graph, node, second); });
  };
  const Pattern rotated = op<ConcatAttrs>(op<NegAttrs>(half(true)), half(false)).where([&](const Node& node) {
    const Dims& dims = graph.value(x).dims;
    return node.as<ConcatAttrs>()->axis + 1 == static_cast<int64_t>(dims.size()) && last_of(dims) % 2 == 0;
  });
  const Pattern turned =
      commuted<AddAttrs>(once(commuted<MulAttrs>(x, cos)), once(commuted<MulAttrs>(once(rotated), sin)));
  return e.sweep([&](int n) {
    turned.match(e, e.result(n), [&] {
      const Value &v = e.value(x), &y = e.value(e.result(n));
      if (v.dtype != DType::kFloat32 || v.dims != y.dims || !y.bounded_dims.empty()) return false;
      for (const ValueId id : {cos.id, sin.id})
        if (last_of(e.value(id).dims) != v.dims.back() || !halves_alike(id)) return false;
      const ValueId half_cos = first_half(e, n, cos), half_sin = first_half(e, n, sin);
      if (half_cos < 0 || half_sin < 0) return false;
      e.replace(n, RopeAttrs{}, {x, half_cos, half_sin});
      return true;
    });
  });
}

}  // namespace

int recognise_rope(Graph& graph) {
  nest_halves(graph);
  int changes = sweep_rope(graph);
  changes += recognise_pair_rope(graph);
  return changes + join_passed(graph);
}

}  // namespace sinter::convert
