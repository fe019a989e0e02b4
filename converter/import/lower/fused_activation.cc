// The activations that com.microsoft's fused operators name.
#include "converter/import/lower/common.h"

namespace sinter::convert {

ValueId activated(NodeLowering& n, ValueId y, std::string_view name, std::optional<double> alpha,
                  std::optional<double> beta) {
  if (name.empty()) return y;
  if (name == "Relu") return n.emit(ClampAttrs{0, kInfinity}, {y});
  if (name == "Sigmoid") return n.emit(SigmoidAttrs{}, {y});
  if (name == "Tanh") return n.emit(TanhAttrs{}, {y});
  if (name == "Softplus") return n.emit(SoftplusAttrs{}, {y});
  if (name == "LeakyRelu") return n.emit(LeakyReluAttrs{alpha.value_or(0.01)}, {y});
  if (name == "Elu") return n.emit(EluAttrs{alpha.value_or(1), 1, 1}, {y});
  if (name == "HardSigmoid") return n.emit(HardSigmoidAttrs{alpha.value_or(0.2), beta.value_or(0.5)}, {y});
  return n.refuse("activation '{}' is not supported", name);
}

ValueId activated_by_attributes(NodeLowering& n, ValueId y, std::string_view name) {
  const auto given = [&](std::string_view attribute) {
    return n.has_attr(attribute) ? std::optional(n.attr_float(attribute, 0)) : std::nullopt;
  };
  n.ignore_attr("activation_gamma");
  return activated(n, y, name, given("activation_alpha"), given("activation_beta"));
}

}  // namespace sinter::convert
