// Control flow: common parts of If, Loop and Scan. Conditions and counts known at conversion are folded or
// unrolled; others become a planned body.
#include "converter/import/lower/control.h"

#include "converter/import/lower/common.h"
#include "converter/types/representable.h"

namespace sinter::convert {

std::vector<ValueId> add_control(NodeLowering& n, OpAttrs attrs, std::vector<ValueId> operands,
                                 const std::vector<ValueId>& captures,
                                 std::vector<std::shared_ptr<Graph>> bodies,
                                 const std::vector<ValueFact>& results) {
  Graph& graph = n.parent().graph();
  operands.insert(operands.end(), captures.begin(), captures.end());
  Node node{std::move(attrs), std::move(operands), {}, n.node().name, n.node().op_type, std::move(bodies)};
  for (const ValueFact& f : results) node.outputs.push_back(graph.add_value({}, f.dtype, f.dims));
  std::vector<ValueId> out = node.outputs;
  graph.nodes.push_back(std::move(node));
  return out;
}

std::optional<bool> known_truth(NodeLowering& n, ValueId v) {
  if (const ConstantPtr c = n.constant(v)) {
    if (c->size() != 1) return std::nullopt;
    if (const auto fraction = fraction_as_truth(*c))
      n.warn("the condition is {}; every number but zero is true", *fraction);
    return c->as_doubles()[0] != 0;
  }
  // A question about lengths whose answer is proven.
  const auto items = n.parent().lengths().known_items(v);
  return items && items->size() == 1 ? std::optional(items->front() != 0) : std::nullopt;
}

std::vector<std::optional<int64_t>> expected_dims(GraphLowering& graph, ValueId v) {
  std::vector<std::optional<int64_t>> sizes;
  if (v < 0) return sizes;
  for (const LengthId length : graph.lengths().of_axes(v)) sizes.push_back(graph.lengths().expected(length));
  return sizes;
}

ValueId stack(NodeLowering& n, const std::vector<ValueId>& items) {
  std::vector<ValueId> parts;
  for (const ValueId v : items) parts.push_back(n.unsqueeze(v, 0));
  return joined(n, std::move(parts), 0);
}

bool give_results(NodeLowering& n, const std::vector<ValueId>& results) {
  bool good = !results.empty();
  for (size_t i = 0; i < results.size() && i < n.output_count(); ++i)
    if (n.wants_output(i)) good &= n.output(i, results[i]);
  return good;
}
}  // namespace sinter::convert
