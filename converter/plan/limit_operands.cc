#include "converter/plan/limit_operands.h"

#include <algorithm>

#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostInputs = detail::kMaxOperands - 1;  // of a Concat; its result is an operand too

}  // namespace

void limit_operands(Graph& graph) {
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    for (const auto& body : node.bodies) limit_operands(*body);
    const auto* concat = node.as<ConcatAttrs>();
    while (concat != nullptr && node.inputs.size() > kMostInputs) {
      std::vector<ValueId> joined;
      for (size_t at = 0; at < node.inputs.size(); at += kMostInputs) {
        const auto first = node.inputs.begin() + static_cast<ptrdiff_t>(at);
        const auto last =
            node.inputs.begin() + static_cast<ptrdiff_t>(std::min(node.inputs.size(), at + kMostInputs));
        const Value& whole = graph.value(node.outputs[0]);
        const DType dtype = whole.dtype;
        Dims dims = whole.dims;
        int64_t& length = dims[static_cast<size_t>(concat->axis)];
        length = 0;
        for (auto in = first; in != last; ++in)
          length += graph.value(*in).dims[static_cast<size_t>(concat->axis)];
        joined.push_back(graph.add_value({}, dtype, dims));
        nodes.push_back({*concat, {first, last}, {joined.back()}, node.name, node.origin, {}});
      }
      node.inputs = joined;
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
}

}  // namespace sinter::convert
