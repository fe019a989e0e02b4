// Rows of conversions between types and between numbers and integers.
#include "converter/export/rows.h"

namespace sinter::convert {
namespace {

// Returns scale or zero point `i`: a scalar, one number for each element of an axis, or blocks, whose axes
// have x's order.
std::string parameter(NodeExport& n, size_t i, int64_t block_size, const Axes& axes) {
  if (!n.has(i)) return {};
  if (block_size > 0) return n.in(i, axes);
  return n.value(i).dims.size() <= 1 ? n.in(i) : n.reshaped(n.in(i), {element_count(n.dims(i))});
}

bool has_axis(const NodeExport& n) { return element_count(n.dims(1)) > 1; }

}  // namespace

bool write_row(NodeExport& n, const CastAttrs& a) {
  const Axes axes = n.axes_of(0);
  const auto to = static_cast<DType>(a.to);
  const std::string x = n.in(0, axes);
  OnnxNode node = n.add("Cast", {x}, {n.out(0, axes)});
  node.set("to", static_cast<int64_t>(onnx_type(to)));
  if (is_float8(to) && a.saturate == 0) node.set("saturate", int64_t{0});
  return true;
}

bool write_row(NodeExport& n, const QuantizeAttrs& a) {
  const Axes axes = n.axes_of(0);
  const auto to = static_cast<DType>(a.to);
  if (a.block_size > 0 && !n.needs_opset(21, "quantization in blocks")) return false;
  if (bit_width(to) == 16 && !n.needs_opset(21, "quantization to 16 bits")) return false;
  const std::string x = n.in(0, axes), scale = parameter(n, 1, a.block_size, axes);
  std::string zero = parameter(n, 2, a.block_size, axes);
  if (zero.empty() && to != DType::kUint8) {  // the zero point has the result's type
    zero = n.scope().parts().initializer(Constant::owned(to, n.dims(1), Bytes(dense_bytes(to, n.dims(1)))),
                                         n.value(1).name + "_zero_point");
  }
  OnnxNode node = n.add("QuantizeLinear", {x, scale, zero}, {n.out(0, axes)});
  if (has_axis(n)) node.set("axis", position_of(axes, a.axis));
  if (a.block_size > 0) node.set("block_size", a.block_size);
  if (is_float8(to) && a.saturate == 0) node.set("saturate", int64_t{0});
  return true;
}

bool write_row(NodeExport& n, const DequantizeAttrs& a) {
  const Axes axes = n.axes_of(0);
  if (a.block_size > 0 && !n.needs_opset(21, "quantization in blocks")) return false;
  if (bit_width(n.dtype(0)) == 16 && !n.needs_opset(21, "quantization to 16 bits")) return false;
  const auto to = static_cast<DType>(a.to);
  const std::string x = n.in(0, axes);
  std::string scale = parameter(n, 1, a.block_size, axes);
  const std::string zero = parameter(n, 2, a.block_size, axes), y = n.out(0, axes);
  // The result has the scale's type: the wider one of both, then a Cast.
  const DType computed =
      bit_width(n.dtype(1)) < bit_width(to) || n.opset() < 19 ? DType::kFloat32 : n.dtype(1);
  if (computed != n.dtype(1)) scale = n.cast(scale, computed);
  const std::string result = computed == to ? y : n.temporary();
  OnnxNode node = n.add("DequantizeLinear", {x, scale, zero}, {result});
  if (has_axis(n)) node.set("axis", position_of(axes, a.axis));
  if (a.block_size > 0) node.set("block_size", a.block_size);
  if (computed != to) n.add("Cast", {result}, {y}).set("to", static_cast<int64_t>(onnx_type(to)));
  return true;
}

// int8 is DynamicQuantizeLinear's uint8 less 128.
bool write_row(NodeExport& n, const DynamicQuantizeAttrs& a) {
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes), y = n.out(0, axes), scale = n.out(1, {}), zero = n.out(2, {});
  const auto to = static_cast<DType>(a.to);
  if (to == DType::kUint8) {
    n.add("DynamicQuantizeLinear", {x}, {y, scale, zero});
    return true;
  }
  const std::string bytes[] = {n.temporary(), n.temporary()};
  n.add("DynamicQuantizeLinear", {x}, {bytes[0], scale.empty() ? n.temporary() : scale, bytes[1]});
  for (size_t i = 0; i < 2; ++i) {
    const std::string to_name = i == 0 ? y : zero;
    if (to_name.empty()) continue;
    const std::string less = n.step("Sub", {n.cast(bytes[i], DType::kInt32), n.scalar(DType::kInt32, 128)});
    n.add("Cast", {less}, {to_name}).set("to", static_cast<int64_t>(onnx_type(to)));
  }
  return true;
}

bool write_row(NodeExport& n, const QuantizeRowsAttrs&) {
  const auto number = [&](double v) { return n.scalar(DType::kFloat32, v); };
  std::string x = n.in(0);
  const std::string q = n.out(0), scales = n.out(1);
  if (n.dtype(0) != DType::kFloat32) x = n.cast(x, DType::kFloat32);
  const std::string largest = n.temporary();
  n.reduce("ReduceMax", n.step("Abs", {x}), {-1}, true, largest);
  const std::string scale = n.step("Div", {largest, number(127)});
  const std::string divisor = n.step("Where", {n.step("Greater", {scale, number(0)}), scale, number(1)});
  const std::string rounded = n.step("Round", {n.step("Div", {x, divisor})});
  n.add("Cast", {n.step("Clip", {rounded, number(-127), number(127)})}, {q})
      .set("to", static_cast<int64_t>(onnx_type(DType::kInt8)));
  if (!scales.empty()) n.add("Squeeze", {scale, n.ints({-1})}, {scales});
  return true;
}

}  // namespace sinter::convert
