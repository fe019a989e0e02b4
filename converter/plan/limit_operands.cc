#include "converter/plan/limit_operands.h"

#include <algorithm>
#include <span>
#include <stdexcept>

#include "converter/ir/builder.h"
#include "converter/ir/recipe.h"
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

ConstantPtr limit_operands(const ConstantPtr& c) {
  const Recipe& recipe = *c->recipe();
  if (!std::holds_alternative<ConcatAttrs>(recipe.attrs) || recipe.inputs.size() <= kMostInputs) return c;
  std::vector<ConstantPtr> joined;
  const std::span all(recipe.inputs);
  for (size_t at = 0; at < all.size(); at += kMostInputs) {
    const auto part = all.subspan(at, std::min(kMostInputs, all.size() - at));
    if (part.size() == 1) {
      joined.push_back(part[0]);
      continue;
    }
    const std::vector<ConstantPtr> inputs(part.begin(), part.end());
    std::vector<ConstantPtr> result;
    if (!evaluate(recipe.attrs, inputs, 1, &result).ok())
      throw std::logic_error("a part of a Concat that was computed cannot be computed");
    joined.push_back(
        Constant::made(result[0], std::make_shared<const Recipe>(Recipe{recipe.attrs, inputs, 0, 1})));
  }
  return limit_operands(
      Constant::made(c, std::make_shared<const Recipe>(Recipe{recipe.attrs, joined, 0, 1})));
}

}  // namespace sinter::convert
