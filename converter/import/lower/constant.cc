// Constant in all its forms.
#include "converter/import/lower.h"

namespace sinter::convert {
namespace {

// The model's own constant; NaN gets a warning.
bool give(NodeLowering& n, const ConstantPtr& constant) {
  if (holds_nan(*constant))
    n.warn("constant '{}' ({}) holds nan, which propagates to the results",
           n.node().outputs.empty() ? std::string() : n.node().outputs[0],
           to_string(constant->dtype(), constant->dims()));
  return n.output(0, n.add_constant(constant));
}

// ONNX Constant-1 to 25: exactly one of value, value_float(s), value_int(s); sparse_value arrives dense.
bool lower_constant(NodeLowering& n) {
  if (n.node().attributes.size() != 1)
    return n.refuse("has {} attributes; exactly one must give the value", n.node().attributes.size());
  if (n.has_attr("value_float") || n.has_attr("value_floats")) {
    const bool one = n.has_attr("value_float");
    const std::vector<double> items = n.attr_floats(one ? "value_float" : "value_floats");
    if (one && items.size() != 1) return n.refuse("attribute value_float must be one number");
    const std::vector<float> floats(items.begin(), items.end());
    const Dims dims = one ? Dims{} : Dims{static_cast<int64_t>(floats.size())};
    return give(n, Constant::of<float>(DType::kFloat32, dims, floats));
  }
  if (n.has_attr("value_int") || n.has_attr("value_ints")) {
    const bool one = n.has_attr("value_int");
    const std::vector<int64_t> items = n.attr_ints(one ? "value_int" : "value_ints");
    if (one && items.size() != 1) return n.refuse("attribute value_int must be one number");
    const Dims dims = one ? Dims{} : Dims{static_cast<int64_t>(items.size())};
    return n.output(0, n.add_constant(Constant::of<int64_t>(DType::kInt64, dims, items)));
  }
  if ((n.has_attr("value_string") || n.has_attr("value_strings")) && !n.node().outputs.empty()) {
    n.parent().define_unusable(n.node().outputs[0], "string", "strings are not supported");
    return false;
  }
  const char* name = n.has_attr("sparse_value") ? "sparse_value" : "value";
  if (!n.has_attr(name)) return n.refuse("attribute '{}' is not a number", n.node().attributes[0].name);
  const ConstantPtr tensor = n.attr_tensor(name);
  return tensor && give(n, tensor);
}

}  // namespace

std::span<const OnnxOperator> constant_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Constant", 1, lower_constant, "", kNoInput},
  };
  return kRules;
}

}  // namespace sinter::convert
