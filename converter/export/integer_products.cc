#include "converter/export/integer_products.h"

#include <algorithm>
#include <optional>

namespace sinter::convert {
namespace {

bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUint8; }

// An operand in 8 bits and its zero point. A constant has new bytes, another one is a value of the graph.
struct ByteOperand {
  ValueId value = kAbsent;
  Axes axes;
  ConstantPtr constant;
  DType dtype = DType::kNone;
  ValueId zero_value = kAbsent;
  std::optional<double> zero;
};

class OperandTracer {
 public:
  explicit OperandTracer(NodeExport& n) : graph_(n.graph()), uses_(n.scope().uses()) {}

  std::optional<ByteOperand> trace(ValueId id, const Axes& axes) const {
    if (graph_.is_constant(id)) return of_constant(*graph_.value(id).constant, axes);
    ByteOperand found;
    found.axes = axes;
    const Node* node = source(id, &found.axes);
    if (node == nullptr) return std::nullopt;
    if (node->as<SubAttrs>() != nullptr) {
      const Value& zero = graph_.value(node->inputs[1]);
      if (zero.constant && zero.constant->size() == 1)
        found.zero = zero.constant->as_doubles()[0];
      else if (element_count(zero.dims) == 1)
        found.zero_value = byte_of(node->inputs[1]);
      if (!found.zero && found.zero_value == kAbsent) return std::nullopt;
      node = source(node->inputs[0], &found.axes);
    }
    if (node == nullptr || node->as<CastAttrs>() == nullptr) return std::nullopt;
    found.value = node->inputs[0];
    found.dtype = graph_.value(found.value).dtype;
    if (!is_byte(found.dtype)) return std::nullopt;
    if (found.zero_value != kAbsent && graph_.value(found.zero_value).dtype != found.dtype)
      return std::nullopt;
    return found;
  }

 private:
  // Returns the node that computes the value, behind those that pass it on, and its axes there.
  const Node* source(ValueId id, Axes* axes) const {
    for (;;) {
      const int at = uses_.producer[static_cast<size_t>(id)];
      if (at < 0) return nullptr;
      const Node& node = graph_.nodes[static_cast<size_t>(at)];
      if (!passes_tensor_on(graph_, node)) return &node;
      *axes = axes_before(graph_, node, *axes);
      id = node.inputs[0];
    }
  }
  // Returns the value in 8 bits of which this one is a Cast; kAbsent: there is none.
  ValueId byte_of(ValueId id) const {
    Axes axes = same_axes(graph_.value(id).dims.size());
    const Node* node = source(id, &axes);
    const bool cast = node != nullptr && node->as<CastAttrs>() != nullptr;
    return cast && is_byte(graph_.value(node->inputs[0]).dtype) ? node->inputs[0] : kAbsent;
  }
  static std::optional<ByteOperand> of_constant(const Constant& c, const Axes& axes) {
    std::vector<int64_t> items = c.as_int64s();
    if (items.empty()) return std::nullopt;
    const auto [least, most] = std::minmax_element(items.begin(), items.end());
    const int64_t low = *least, high = *most;
    const bool is_signed = low >= -128 && high <= 127;
    if (!is_signed && (high - std::min<int64_t>(low, 0) > 255 || low < -255)) return std::nullopt;
    ByteOperand found;
    found.axes = axes;
    found.dtype = is_signed ? DType::kInt8 : DType::kUint8;
    if (!is_signed && low < 0) found.zero = static_cast<double>(-low);
    Bytes bytes(items.size());
    for (size_t i = 0; i < items.size(); ++i)
      bytes[i] = static_cast<std::byte>(items[i] + static_cast<int64_t>(found.zero.value_or(0)));
    found.constant = Constant::owned(found.dtype, c.dims(), std::move(bytes));
    return found;
  }

  const Graph& graph_;
  const Uses& uses_;
};

std::string tensor_of(NodeExport& n, const ByteOperand& x, size_t operand) {
  if (!x.constant) return n.scope().tensor(x.value, x.axes);
  return n.scope().parts().initializer(x.constant, x.axes, n.value(operand).name);
}

std::string zero_of(NodeExport& n, const ByteOperand& x) {
  if (x.zero) return *x.zero == 0 ? "" : n.scalar(x.dtype, *x.zero);
  return x.zero_value == kAbsent ? "" : n.scope().tensor(x.zero_value, {});
}

}  // namespace

bool write_integer_conv(NodeExport& n, const ConvAttrs& a, const Axes& weight_axes,
                        const std::vector<int64_t>& kernel) {
  const OperandTracer tracer(n);
  const Axes first = channels_first(n.rank(0));
  const auto x = tracer.trace(n.node().inputs[0], first);
  const auto weights = tracer.trace(n.node().inputs[1], weight_axes);
  if (!x || !weights || n.has(2) || a.act_min != -kInfinity || a.act_max != kInfinity)
    return n.refuse("ONNX has no convolution of these integers: ConvInteger takes 8 bits with one zero point",
                    "convolve floats in the model");
  const std::string operands[] = {tensor_of(n, *x, 0), tensor_of(n, *weights, 1), zero_of(n, *x),
                                  zero_of(n, *weights)};
  OnnxNode node = n.add("ConvInteger", {operands, operands + 4}, {n.out(0, first)});
  node.set_ints("kernel_shape", kernel);
  node.set_ints("strides", a.strides).set_ints("dilations", a.dilations).set_ints("pads", a.pads);
  node.set("group", a.group);
  return true;
}

bool write_integer_product(NodeExport& n, const Axes& first, const Axes& second) {
  if (n.dtype(0) != DType::kInt32) return false;
  const OperandTracer tracer(n);
  const auto a = tracer.trace(n.node().inputs[0], first), b = tracer.trace(n.node().inputs[1], second);
  if (!a || !b || (a->constant && b->constant)) return false;
  const std::string operands[] = {tensor_of(n, *a, 0), tensor_of(n, *b, 1), zero_of(n, *a), zero_of(n, *b)};
  n.add("MatMulInteger", {operands, operands + 4}, {n.out()});
  return true;
}

}  // namespace sinter::convert
