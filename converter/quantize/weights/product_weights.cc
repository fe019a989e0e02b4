#include "converter/quantize/weights/product_weights.h"

#include <algorithm>

namespace sinter::convert {

std::optional<ProductWeights> product_weights(const Graph& graph, const Node& node) {
  ProductWeights p;
  int64_t group = 1;
  if (const auto* conv = node.as<ConvAttrs>()) {
    p.act_min = conv->act_min, p.act_max = conv->act_max, group = conv->group;
  } else if (const auto* deep = node.as<DepthwiseConvAttrs>()) {
    p.act_min = deep->act_min, p.act_max = deep->act_max, p.depthwise = true;
  } else if (const auto* back = node.as<ConvTransposeAttrs>()) {
    p.act_min = back->act_min, p.act_max = back->act_max, group = back->group;
  } else if (const auto* full = node.as<FullyConnectedAttrs>()) {
    p.act_min = full->act_min, p.act_max = full->act_max;
  } else {
    return std::nullopt;
  }
  const ValueId x = node.inputs[0], w = node.inputs[1];
  const ValueId b = node.inputs.size() > 2 ? node.inputs[2] : kAbsent;
  if (!graph.is_constant(w) || graph.is_constant(x) || (b >= 0 && !graph.is_constant(b))) return std::nullopt;
  for (const ValueId id : {x, w, node.outputs[0]})
    if (graph.value(id).dtype != DType::kFloat32) return std::nullopt;
  p.weights = graph.value(w).constant;
  if (b >= 0) p.bias = graph.value(b).constant;
  if (p.weights->size() == 0) return std::nullopt;
  const Dims& dims = p.weights->dims();
  p.axis = p.depthwise ? static_cast<int64_t>(dims.size()) - 1 : 0;
  p.rows = dims[static_cast<size_t>(p.axis)];
  p.row_size = p.weights->size() / p.rows;
  p.columns = graph.value(x).dims.back();
  p.each = p.depthwise ? 1 : dims.back();
  p.per_group = p.rows / group;
  p.per_column = p.depthwise ? p.rows / p.columns : 1;
  return p;
}

ConstantPtr float_constant(const Dims& dims, const std::vector<double>& numbers) {
  Bytes bytes(numbers.size() * sizeof(float));
  std::transform(numbers.begin(), numbers.end(), reinterpret_cast<float*>(bytes.data()),
                 [](double x) { return static_cast<float>(x); });
  return Constant::owned(DType::kFloat32, dims, std::move(bytes));
}

void set_weights(Graph& graph, Node& node, const std::vector<double>* weights,
                 const std::vector<double>* bias) {
  const auto put = [&](size_t operand, const Dims& dims, const std::vector<double>& items) {
    if (node.inputs.size() <= operand) node.inputs.resize(operand + 1, kAbsent);
    ValueId& id = node.inputs[operand];
    const std::string name = id >= 0 ? graph.value(id).name : std::string();
    id = graph.add_constant(float_constant(dims, items), name);
  };
  if (weights != nullptr) put(1, Dims(graph.value(node.inputs[1]).dims), *weights);
  if (bias != nullptr) put(2, {static_cast<int64_t>(bias->size())}, *bias);
}

}  // namespace sinter::convert
