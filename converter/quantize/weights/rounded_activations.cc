#include "converter/quantize/weights/rounded_activations.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinter::convert {

int round_activations(Graph& graph) {
  int rounded = 0;
  for (Node& node : graph.nodes) {
    for (const auto& body : node.bodies) rounded += round_activations(*body);
    const auto* attrs = node.as<LowBitFullyConnectedAttrs>();
    if (attrs == nullptr || is_float(graph.value(node.inputs[1]).dtype)) continue;
    if (node.inputs.size() > 5 && node.inputs[5] != kAbsent) continue;  // numbers of a table
    LowBitFullyConnectedAttrs changed = *attrs;
    changed.activation_bits = 8;
    node.attrs = changed;
    const Value& x = graph.value(node.inputs[0]);
    graph.decide(
        x, node, DType::kInt8, TypeRule::kQuantizeValues, TypeEffect::kQuantized,
        fmt::format("rounded by the product, {} to a scale", std::min(attrs->block_size, x.dims.back())));
    ++rounded;
  }
  return rounded;
}

}  // namespace sinter::convert
