#include "converter/ir/narrow_weights.h"

#include "converter/ir/recipe.h"
#include "runtime/core/narrow_weights.h"

namespace sinter::convert {

ConstantPtr narrow_weights(const Graph& graph, const Node& node) {
  if (node.op() != Op::kFullyConnected && node.op() != Op::kConv) return nullptr;
  const int64_t fewest = node.op() == Op::kConv ? kNarrowFilterElements : kNarrowLayerElements;
  const ConstantPtr& wide = graph.value(node.inputs[1]).constant;
  if (!wide || wide->dtype() != DType::kFloat32 || wide->size() < fewest || !wide->recipe() ||
      !std::holds_alternative<CastAttrs>(wide->recipe()->attrs))
    return nullptr;
  const ConstantPtr& narrow = wide->recipe()->inputs[0];
  return !narrow->recipe() && is_narrow_weight(narrow->dtype()) ? narrow : nullptr;
}

}  // namespace sinter::convert
