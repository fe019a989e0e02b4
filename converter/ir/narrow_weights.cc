#include "converter/ir/narrow_weights.h"

#include "converter/ir/recipe.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::convert {
namespace {

// Whatever their number.
ConstantPtr any_narrow(const Graph& graph, const Node& node) {
  if (node.op() != Op::kFullyConnected && node.op() != Op::kConv) return nullptr;
  const ConstantPtr& wide = graph.value(node.inputs[1]).constant;
  if (!wide || wide->dtype() != DType::kFloat32 || !wide->recipe() ||
      !std::holds_alternative<CastAttrs>(wide->recipe()->attrs))
    return nullptr;
  const ConstantPtr& narrow = wide->recipe()->inputs[0];
  return !narrow->recipe() && is_narrow_weight(narrow->dtype()) ? narrow : nullptr;
}

}  // namespace

NarrowWeights::NarrowWeights(const Graph& graph) : graph_(graph) {
  int64_t all = 0;
  for (const Node& node : graph.nodes)
    if (node.op() == Op::kFullyConnected)
      if (const ConstantPtr narrow = any_narrow(graph, node)) all += narrow->size();
  fewest_ = narrow_layer_elements(all);
}

ConstantPtr NarrowWeights::of(const Node& node) const {
  const int64_t fewest = node.op() == Op::kConv ? kNarrowFilterElements : fewest_;
  ConstantPtr narrow = any_narrow(graph_, node);
  return narrow && narrow->size() >= fewest ? narrow : nullptr;
}

}  // namespace sinter::convert
