// The graph in float64, against which models are compared.
#include "converter/convert.h"

namespace sinter::convert {
namespace {

DType doubled(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat64 : t;
}

ConstantPtr widened(const ConstantPtr& constant) {
  const DType wide = doubled(constant->dtype());
  if (wide == constant->dtype()) return constant;
  std::vector<ConstantPtr> cast;
  if (!evaluate(CastAttrs{static_cast<int64_t>(wide), 1}, {constant}, 1, &cast).ok())
    throw std::logic_error("a constant cannot be widened");
  return cast[0];
}

// Operations whose kernels compute in the types that their rule states alone.
bool has_own_types(Op op) { return op == Op::kCustom || op == Op::kDynamicQuantize; }

// Operands of such an operation are cast to what they were in `source`, and its results are widened.
void keep_custom_types(const Graph& source, Graph* graph) {
  std::vector<Node> nodes = std::move(graph->nodes);
  graph->nodes.clear();
  const auto own = [&](ValueId id) {
    const Value& v = source.value(id);
    return v.constant ? graph->add_constant(v.constant) : graph->add_value(v.name, v.dtype, v.dims);
  };
  const auto changed = [&](ValueId id) {
    return id >= 0 && graph->value(id).dtype != source.value(id).dtype;
  };
  const auto cast = [&](const Node& node, ValueId from, ValueId to) {
    const auto type = static_cast<int64_t>(graph->value(to).dtype);
    graph->nodes.push_back({CastAttrs{type, 1}, {from}, {to}, node.name, "Cast", {}});
  };
  for (Node& node : nodes) {
    std::vector<std::pair<ValueId, ValueId>> results;
    if (has_own_types(node.op())) {
      for (ValueId& id : node.inputs) {
        if (!changed(id)) continue;
        const ValueId narrow = own(id);
        if (!graph->is_constant(narrow)) cast(node, id, narrow);
        id = narrow;
      }
      for (ValueId& id : node.outputs)
        if (changed(id)) results.emplace_back(own(id), id), id = results.back().first;
    }
    const Node of{CastAttrs{}, {}, {}, node.name, {}, {}};
    graph->nodes.push_back(std::move(node));
    for (const auto& [from, to] : results) cast(of, from, to);
  }
}

}  // namespace

Graph to_float64(const Graph& source) {
  Graph graph = source;
  for (Value& v : graph.values) {
    const DType wide = doubled(v.dtype);
    if (wide == v.dtype) continue;
    v.dtype = wide;
    if (!v.constant) continue;
    v.constant = widened(v.constant);
  }
  for (Node& node : graph.nodes) {
    if (auto* cast = node.as<CastAttrs>())
      cast->to = static_cast<int64_t>(doubled(static_cast<DType>(cast->to)));
    if (auto* deq = node.as<DequantizeAttrs>())
      deq->to = static_cast<int64_t>(doubled(static_cast<DType>(deq->to)));
    for (auto& body : node.bodies) body = std::make_shared<Graph>(to_float64(*body));
  }
  keep_custom_types(source, &graph);
  for (GraphState& state : graph.states)
    if (state.initial) state.initial = widened(state.initial);
  return graph;
}

}  // namespace sinter::convert
