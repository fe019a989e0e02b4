// Rows of convolutions and products of matrices.
#include "converter/export/integer_products.h"
#include "converter/export/rows.h"
#include "converter/import/read/onnx.pb.h"
#include "converter/ir/builder.h"

namespace sinter::convert {
namespace {

// Adds the attributes that all convolutions have.
template <class Attrs>
OnnxNode& set_window(OnnxNode& node, const Attrs& a, const std::vector<int64_t>& kernel, int64_t group) {
  node.set_ints("kernel_shape", kernel).set_ints("strides", a.strides).set_ints("dilations", a.dilations);
  return node.set_ints("pads", a.pads).set("group", group);
}

// Returns weights in x's type, which may be wider.
std::string weights_in(NodeExport& n, const Axes& axes) {
  const std::string weights = n.in(1, axes);
  return n.dtype(1) == n.dtype(0) ? weights : n.cast(weights, n.dtype(0));
}

Axes swapped(size_t rank, bool swap) {
  Axes axes = same_axes(rank);
  if (swap) std::swap(axes[rank - 1], axes[rank - 2]);
  return axes;
}

std::vector<int64_t> spatial_of(const Dims& dims, size_t begin, size_t end) {
  return {dims.begin() + static_cast<ptrdiff_t>(begin), dims.begin() + static_cast<ptrdiff_t>(end)};
}

// Returns weights [O, spatial..., C / group] as [C, O / group, spatial...].
std::string transposed_weights(NodeExport& n, int64_t group) {
  const Dims& d = n.dims(1);
  const auto rank = static_cast<int64_t>(d.size());
  if (group == 1) {
    Axes axes{static_cast<int>(rank) - 1};
    for (int i = 0; i + 1 < rank; ++i) axes.push_back(i);
    return weights_in(n, axes);
  }
  Dims split{group, d[0] / group}, joined{group * d.back(), d[0] / group};
  split.insert(split.end(), d.begin() + 1, d.end());
  joined.insert(joined.end(), d.begin() + 1, d.end() - 1);
  std::vector<int64_t> perm{0, rank, 1};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  if (const ConstantPtr c = n.constant(1)) {
    const ConstantPtr moved =
        evaluated(TransposeAttrs{IntList(std::span<const int64_t>(perm))}, {c->reshaped(split)}, false);
    const std::string name = n.scope().parts().initializer(moved->reshaped(joined), n.value(1).name);
    return n.dtype(1) == n.dtype(0) ? name : n.cast(name, n.dtype(0));
  }
  return n.reshaped(n.transposed(n.reshaped(weights_in(n, same_axes(d.size())), split), perm), joined);
}

}  // namespace

bool write_row(NodeExport& n, const ConvAttrs& a) {
  const Axes first = channels_first(n.rank(0)), axes = channels_first(n.rank(1));
  const std::vector<int64_t> kernel = spatial_of(n.dims(1), 1, n.rank(1) - 1);
  if (!is_float(n.dtype(0))) return write_integer_conv(n, a, axes, kernel);
  const std::string x = n.in(0, first), weights = weights_in(n, axes), bias = n.in(2);
  OnnxNode node = n.add("Conv", {x, weights, bias}, {n.clamped_out(first, a.act_min, a.act_max)});
  set_window(node, a, kernel, a.group);
  return n.done();
}

bool write_row(NodeExport& n, const DepthwiseConvAttrs& a) {
  const Axes first = channels_first(n.rank(0));
  // [spatial..., O] as [O, 1, spatial...].
  const size_t spatial = n.rank(1) - 1;
  Axes axes{static_cast<int>(spatial), -1};
  for (size_t i = 0; i < spatial; ++i) axes.push_back(static_cast<int>(i));
  const std::vector<int64_t> kernel = spatial_of(n.dims(1), 0, spatial);
  if (!is_float(n.dtype(0))) {
    const ConvAttrs conv{a.strides, a.dilations, a.pads, n.dims(0).back(), a.act_min, a.act_max};
    return write_integer_conv(n, conv, axes, kernel);
  }
  const std::string x = n.in(0, first), weights = weights_in(n, axes), bias = n.in(2);
  OnnxNode node = n.add("Conv", {x, weights, bias}, {n.clamped_out(first, a.act_min, a.act_max)});
  set_window(node, a, kernel, n.dims(0).back());
  return n.done();
}

bool write_row(NodeExport& n, const ConvTransposeAttrs& a) {
  const Axes first = channels_first(n.rank(0));
  const std::string x = n.in(0, first), weights = transposed_weights(n, a.group), bias = n.in(2);
  OnnxNode node = n.add("ConvTranspose", {x, weights, bias}, {n.clamped_out(first, a.act_min, a.act_max)});
  set_window(node, a, spatial_of(n.dims(1), 1, n.rank(1) - 1), a.group);
  node.set_ints("output_padding", a.output_padding);
  return n.done();
}

bool write_row(NodeExport& n, const FullyConnectedAttrs& a) {
  const Axes same = same_axes(n.rank(0));
  if (!is_float(n.dtype(0)) && !n.has(2) && write_integer_product(n, same, swapped(2, true))) return true;
  const std::string x = n.in(0);
  if (n.rank(0) == 2 && n.node().origin != "MatMul" && is_float(n.dtype(0))) {
    const std::string weights = weights_in(n, same_axes(2)), bias = n.in(2);
    n.add("Gemm", {x, weights, bias}, {n.clamped_out(a.act_min, a.act_max)}).set("transB", int64_t{1});
    return n.done();
  }
  const std::string weights = weights_in(n, swapped(2, true));
  const std::string bias = n.in(2), y = n.clamped_out(a.act_min, a.act_max);
  const std::string product = bias.empty() ? y : n.temporary();
  n.add("MatMul", {x, weights}, {product});
  if (!bias.empty()) n.add("Add", {product, bias}, {y}).proto()->set_name(n.label() + "_bias");
  return n.done();
}

bool write_row(NodeExport& n, const MatMulAttrs& a) {
  const Axes first = swapped(n.rank(0), a.transpose_a != 0), second = swapped(n.rank(1), a.transpose_b != 0);
  if (!is_float(n.dtype(0)) && write_integer_product(n, first, second)) return true;
  const std::string x = n.in(0, first), y = n.in(1, second);
  n.add("MatMul", {x, y}, {n.out()});
  return true;
}

}  // namespace sinter::convert
