#include "converter/ir/quant_params.h"

#include <algorithm>
#include <cmath>

namespace sinter::convert {

QuantRange quant_range(DType type) {
  switch (type) {
    case DType::kInt8:
      return {-128, 127};
    case DType::kUint8:
      return {0, 255};
    case DType::kInt16:
      return {-32768, 32767};
    case DType::kUint16:
      return {0, 65535};
    case DType::kInt4:
      return {-8, 7};
    case DType::kUint4:
      return {0, 15};
    default:
      return {};
  }
}

int64_t QuantParams::quantize(double x) const {
  const auto [low, high] = quant_range(type);
  const double q = std::nearbyint(x / scale) + static_cast<double>(zero_point);
  return static_cast<int64_t>(std::clamp(q, static_cast<double>(low), static_cast<double>(high)));
}

// A difference to a zero point is 255 at most, so that 128 steps of each fit.
QuantParams finer(const QuantParams& p) {
  return {DType::kInt16, static_cast<double>(static_cast<float>(p.scale / 128)), 0};
}

std::optional<QuantParams> quant_params(const Graph& graph, const Node& node) {
  const auto* q = node.as<QuantizeAttrs>();
  const auto* d = node.as<DequantizeAttrs>();
  if (q == nullptr && d == nullptr) return std::nullopt;
  const DType number = graph.value(q != nullptr ? node.inputs[0] : node.outputs[0]).dtype;
  if (number != DType::kFloat32) return std::nullopt;
  QuantParams p;
  p.type = graph.value(q != nullptr ? node.outputs[0] : node.inputs[0]).dtype;
  if (quant_range(p.type).max == 0) return std::nullopt;
  const auto single = [&](size_t i) -> ConstantPtr {
    const ConstantPtr c = graph.value(node.inputs[i]).constant;
    return c && c->size() == 1 ? c : nullptr;
  };
  const ConstantPtr scale = single(1);
  if (!scale || graph.value(node.inputs[1]).dtype != DType::kFloat32) return std::nullopt;
  p.scale = scale->as_doubles()[0];
  if (!std::isfinite(p.scale) || p.scale < 1e-30 || p.scale > 1e30) return std::nullopt;
  if (node.inputs.size() > 2 && node.inputs[2] >= 0) {
    const ConstantPtr zero = single(2);
    if (!zero) return std::nullopt;
    p.zero_point = zero->as_int64s()[0];
  }
  return p;
}

}  // namespace sinter::convert
