// fold-scale: factors and addends per output channel after a linear operation (a batch normalization, a bias)
// are merged into its weights and bias. Everything is computed in double and rounded once. Shifts that would
// swallow the bias (masks of -1e9) are not part of an affine function and stay.
#include <algorithm>
#include <cmath>
#include <set>

#include "converter/ir/narrow_weights.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/pass.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

// Outputs of a linear operation: their count and the axis of the weights that counts them.
struct Linear {
  int64_t outputs = 0;
  bool last = false;  // the last axis of the weights, else the first
  // Operands. What low-bit weights are scaled by is their scales.
  size_t weights = 1, bias = 2;
};

std::optional<Linear> linear(const Editor& e, const Node& node) {
  const bool low_bit = node.op() == Op::kLowBitFullyConnected;
  if ((!low_bit && !is_weighted_product(node.op())) || !clamp_of(node).none()) return std::nullopt;
  Linear shape;
  if (low_bit) shape.weights = 2, shape.bias = 4;
  const ValueId weights = node.inputs[shape.weights];
  if (weights < 0 || e.value(weights).constant == nullptr) return std::nullopt;
  const ValueId bias = node.inputs.size() > shape.bias ? node.inputs[shape.bias] : kAbsent;
  if (bias >= 0 && e.value(bias).constant == nullptr) return std::nullopt;
  const Value& y = e.value(node.outputs[0]);
  if (y.dims.empty() || !is_wide_float(y.dtype) || e.value(weights).dtype != y.dtype) return std::nullopt;
  shape.outputs = y.dims.back();
  shape.last = node.op() == Op::kDepthwiseConv;
  return shape;
}

bool finite(const std::vector<double>& items) {
  return std::all_of(items.begin(), items.end(), [](double v) { return std::isfinite(v); });
}

// A constant as one number for each of `channels` along the last axis of a value of this rank.
std::optional<std::vector<double>> per_channel(const Editor& e, ValueId id, int64_t channels, size_t rank) {
  if (id < 0 || e.value(id).constant == nullptr) return std::nullopt;
  const Dims& dims = e.value(id).dims;
  const int64_t size = element_count(dims);
  if (dims.size() > rank) return std::nullopt;
  if (size != 1 && (size != channels || dims.back() != channels)) return std::nullopt;
  std::vector<double> items = e.value(id).constant->as_doubles();
  if (size == 1) items.assign(static_cast<size_t>(channels), items[0]);
  return finite(items) ? std::optional(std::move(items)) : std::nullopt;
}

constexpr double kLargestShift = 1e6;

ConstantPtr rounded(DType dtype, const Dims& dims, const std::vector<double>& items) {
  for (const double item : items)
    if (!std::isfinite(dtype == DType::kFloat64 ? item : static_cast<double>(static_cast<float>(item))))
      return nullptr;
  return real_constant(dtype, dims, items);
}

// The same product as operations, so that narrow weights stay narrow in the file.
ConstantPtr scaled_recipe(const ConstantPtr& old, const Linear& shape, const std::vector<double>& scale) {
  Dims dims(shape.last ? 1 : old->dims().size(), 1);
  dims[0] = shape.outputs;
  const auto cast = [](DType to, const ConstantPtr& c, std::vector<ConstantPtr>* out) {
    return evaluate(CastAttrs{static_cast<int64_t>(to), 1}, {c}, 1, out).ok();
  };
  std::vector<ConstantPtr> wide, product, result;
  if (!cast(DType::kFloat64, old, &wide) ||
      !evaluate(MulAttrs{}, {wide[0], Constant::of<double>(DType::kFloat64, dims, scale)}, 1, &product)
           .ok() ||
      !cast(old->dtype(), product[0], &result) || !finite(result[0]->as_doubles()))
    return nullptr;
  return result[0];
}

ConstantPtr scaled(ConstantPtr old, const Linear& shape, std::vector<double> scale) {
  if (old->recipe() && old->dtype() == DType::kFloat32) return scaled_recipe(old, shape, scale);
  const auto compute = [old, shape, scale = std::move(scale)] {
    std::vector<double> items = old->as_doubles();
    const auto outputs = static_cast<size_t>(shape.outputs);
    const size_t each = items.size() / outputs;
    for (size_t i = 0; i < items.size(); ++i) items[i] *= scale[shape.last ? i % outputs : i / each];
    return rounded(old->dtype(), old->dims(), items);
  };
  ConstantPtr now = compute();
  if (!now || now->byte_size() < kLazyBytes) return now;
  return Constant::lazy(now->dtype(), now->dims(), [compute] {
    const LoadedBytes loaded = compute()->load();
    return Bytes(loaded.bytes.begin(), loaded.bytes.end());
  });
}

// y = (linear(x) + bias) * scale + shift with the new weights and bias as operands.
bool fold(Editor& e, int n, const Linear& shape, const std::vector<double>& scale,
          const std::vector<double>& shift, bool scales) {
  Node& node = e.node(n);
  const DType dtype = e.value(node.outputs[0]).dtype;
  std::vector<ValueId> inputs = node.inputs;
  inputs.resize(shape.bias + 1, kAbsent);
  const auto outputs = static_cast<size_t>(shape.outputs);
  if (outputs == 0) return false;
  ConstantPtr weights;
  if (scales) {
    weights = scaled(e.value(inputs[shape.weights]).constant, shape, scale);
    if (!weights) return false;
  }
  std::vector<double> bias(outputs, 0.0);
  if (inputs[shape.bias] >= 0) bias = e.value(inputs[shape.bias]).constant->as_doubles();
  for (size_t i = 0; i < outputs; ++i) bias[i] = bias[i] * scale[i] + shift[i];
  const ConstantPtr folded = rounded(dtype, {shape.outputs}, bias);
  if (!folded) return false;
  if (weights) {
    ValueId& id = inputs[shape.weights];
    const std::string name = e.value(id).name;
    id = e.constant(weights);
    e.graph().value(id).name = name;
  }
  inputs[shape.bias] = e.constant(folded);
  e.replace(n, node.attrs, inputs);
  return true;
}

// Mul or Add behind node n's only reader; false if it is not one that folds.
bool fold_into(Editor& e, int consumer, const NarrowWeights& narrow, const std::set<ValueId>& embeddings) {
  Node& next = e.node(consumer);
  const auto* mul = next.as<MulAttrs>();
  const auto* add = next.as<AddAttrs>();
  const auto* sub = next.as<SubAttrs>();
  const auto* div = next.as<DivAttrs>();
  if (!mul && !add && !sub && !div) return false;
  if (!clamp_of(next).none()) return false;
  for (size_t side = 0; side < (sub || div ? 1u : 2u); ++side) {
    const ValueId y = next.inputs[side];
    int n = e.producer(y);
    if (n < 0 || !e.single_read(y) || !same_dims(e.graph(), y, next.outputs[0]) ||
        !e.value(y).bounded_dims.empty())
      continue;
    // Perhaps other dims before the channels.
    const int view = e.node(n).as<ViewAttrs>() != nullptr && e.value(y).dtype == DType::kFloat32 ? n : -1;
    if (view >= 0) {
      const ValueId from = e.node(view).inputs[0];
      n = e.producer(from);
      if (n < 0 || !e.single_read(from) || !e.value(from).bounded_dims.empty() ||
          e.value(from).dims.empty() || e.value(y).dims.empty() ||
          e.value(from).dims.back() != e.value(y).dims.back())
        continue;
    }
    const auto shape = linear(e, e.node(n));
    if (!shape) continue;
    const auto c = per_channel(e, next.inputs[1 - side], shape->outputs, e.value(y).dims.size());
    if (!c) continue;
    std::vector<double> one(c->size(), 1.0), zero(c->size(), 0.0), other = *c;
    if (div)
      for (double& v : other) v = 1 / v;
    if (sub)
      for (double& v : other) v = -v;
    for (const double v : other)
      if (!std::isfinite(v) || ((add || sub) && std::fabs(v) > kLargestShift)) return false;
    const bool scales = mul != nullptr || div != nullptr;
    // Scaled weights would be wide, and take more time to read than their few results to scale.
    if (scales && narrow.of(e.node(n))) return false;
    // Beside the rows that an embedding reads they would be a second copy.
    if (scales && embeddings.count(e.node(n).inputs[shape->weights]) != 0) return false;
    if (!fold(e, n, *shape, scales ? other : one, scales ? zero : other, scales)) return false;
    // Before the view the result now has no counterpart in the model.
    if (view >= 0) e.graph().value(e.node(n).outputs[0]).name.clear();
    e.absorb(view >= 0 ? view : n, consumer);
    return true;
  }
  return false;
}

}  // namespace

int fold_scale(Graph& graph) {
  Editor e(graph);
  const NarrowWeights narrow(e.graph());
  std::set<ValueId> embeddings;
  for (const Node& node : graph.nodes)
    if (node.op() == Op::kGather) embeddings.insert(node.inputs[0]);
  return e.sweep([&](int n) { fold_into(e, n, narrow, embeddings); });
}

}  // namespace sinter::convert
