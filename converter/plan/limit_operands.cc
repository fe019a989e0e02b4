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

// `inputs`, each kMostInputs of them replaced by what `join` makes of these.
template <class T, class Join>
std::vector<T> in_groups(const std::vector<T>& inputs, const Join& join) {
  std::vector<T> joined;
  const std::span all(inputs);
  for (size_t at = 0; at < all.size(); at += kMostInputs) {
    const auto part = all.subspan(at, std::min(kMostInputs, all.size() - at));
    joined.push_back(part.size() == 1 ? part[0] : join(std::vector<T>(part.begin(), part.end())));
  }
  return joined;
}

}  // namespace

void limit_operands(Graph& graph) {
  std::vector<Node> nodes;
  for (Node& node : graph.nodes) {
    for (const auto& body : node.bodies) limit_operands(*body);
    const auto* concat = node.as<ConcatAttrs>();
    const auto join = [&](const std::vector<ValueId>& part) {
      const Value& whole = graph.value(node.outputs[0]);
      const DType dtype = whole.dtype;
      Dims dims = whole.dims;
      const auto axis = static_cast<size_t>(concat->axis);
      dims[axis] = 0;
      for (const ValueId in : part) dims[axis] += graph.value(in).dims[axis];
      const ValueId joined = graph.add_value({}, dtype, dims);
      nodes.push_back({*concat, part, {joined}, node.name, node.origin, {}});
      return joined;
    };
    while (concat != nullptr && node.inputs.size() > kMostInputs) node.inputs = in_groups(node.inputs, join);
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
}

ConstantPtr limit_operands(const ConstantPtr& c) {
  const OpAttrs& attrs = c->recipe()->attrs;
  std::vector<ConstantPtr> inputs = c->recipe()->inputs;
  if (!std::holds_alternative<ConcatAttrs>(attrs) || inputs.size() <= kMostInputs) return c;
  const auto join = [&](const std::vector<ConstantPtr>& part) {
    std::vector<ConstantPtr> result;
    if (!evaluate(attrs, part, 1, &result).ok())
      throw std::logic_error("a part of a Concat that was computed cannot be computed");
    return Constant::made(result[0], std::make_shared<const Recipe>(Recipe{attrs, part, 0, 1}));
  };
  while (inputs.size() > kMostInputs) inputs = in_groups(inputs, join);
  return Constant::made(c, std::make_shared<const Recipe>(Recipe{attrs, inputs, 0, 1}));
}

}  // namespace sinter::convert
