#include "converter/ir/narrow_weights.h"

#include "converter/ir/recipe.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::convert {
namespace {

// Returns an operand's narrow numbers, however few. `powers`: also float8e8m0, the type of scales.
ConstantPtr narrow_form(const Graph& graph, ValueId operand, bool powers = false) {
  if (operand == kAbsent) return nullptr;
  const ConstantPtr& wide = graph.value(operand).constant;
  if (!wide || wide->dtype() != DType::kFloat32 || !wide->recipe() ||
      !std::holds_alternative<CastAttrs>(wide->recipe()->attrs))
    return nullptr;
  const ConstantPtr& narrow = wide->recipe()->inputs[0];
  const bool fits = is_narrow_weight(narrow->dtype()) || (powers && narrow->dtype() == DType::kFloat8E8M0);
  return !narrow->recipe() && fits ? narrow : nullptr;
}
ConstantPtr any_narrow(const Graph& graph, const Node& node) {
  const bool reads = node.op() == Op::kFullyConnected || node.op() == Op::kConv;
  return reads ? narrow_form(graph, node.inputs[1]) : nullptr;
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

NarrowWeights::Operand NarrowWeights::operand_of(const Node& node) const {
  switch (node.op()) {
    case Op::kLowBitFullyConnected:
      return {2, narrow_form(graph_, node.inputs[2], true)};
    case Op::kExpertFullyConnected:
      return {3, node.inputs.size() > 3 ? narrow_form(graph_, node.inputs[3], true) : nullptr};
    default:
      return {1, of(node)};
  }
}

}  // namespace sinter::convert
