// Convolutions and fully connected layers with known inputs and constant weights become integer products.
#include <algorithm>
#include <cmath>

#include "converter/quantize/integers/integer_form.h"
#include "converter/quantize/integers/integer_rows.h"
#include "converter/quantize/weights/integer_weights.h"
#include "runtime/core/integer_limits.h"

namespace sinter::convert {
namespace {

constexpr double kMostSum = 0x1p31 - 1;  // of an int32 accumulator

// A product of the float graph.
struct Product {
  int64_t axis = 0;  // of the output channels in the weights
  double act_min = -kInfinity, act_max = kInfinity;
};

std::optional<Product> product_of(const Node& node, const Dims& weights) {
  const auto last = static_cast<int64_t>(weights.size()) - 1;
  if (const auto* a = node.as<ConvAttrs>()) return Product{0, a->act_min, a->act_max};
  if (const auto* a = node.as<DepthwiseConvAttrs>()) return Product{last, a->act_min, a->act_max};
  if (const auto* a = node.as<ConvTransposeAttrs>()) return Product{0, a->act_min, a->act_max};
  if (const auto* a = node.as<FullyConnectedAttrs>()) return Product{0, a->act_min, a->act_max};
  return std::nullopt;
}

// The integer row's attributes; the caller fills in zero points and bounds.
struct Integers {
  int64_t x_zero = 0, y_zero = 0, q_min = -128, q_max = 127, to = 0, wide = 0;
};

template <class Q>
Q with(Q q, const Integers& i) {
  q.x_zero = i.x_zero, q.y_zero = i.y_zero, q.q_min = i.q_min, q.q_max = i.q_max, q.to = i.to;
  q.wide_weights = i.wide;
  return q;
}

OpAttrs integer_attrs(const Node& node, const Integers& i) {
  if (const auto* a = node.as<ConvAttrs>()) {
    QConvAttrs q{};
    q.strides = a->strides, q.dilations = a->dilations, q.pads = a->pads, q.group = a->group;
    return with(q, i);
  }
  if (const auto* a = node.as<DepthwiseConvAttrs>()) {
    QDepthwiseConvAttrs q{};
    q.strides = a->strides, q.dilations = a->dilations, q.pads = a->pads;
    return with(q, i);
  }
  if (const auto* a = node.as<ConvTransposeAttrs>()) {
    QConvTransposeAttrs q{};
    q.strides = a->strides, q.dilations = a->dilations, q.pads = a->pads, q.group = a->group;
    q.output_padding = a->output_padding;
    return with(q, i);
  }
  return with(QFullyConnectedAttrs{}, i);
}

template <class T>
ConstantPtr vector_of(DType dtype, const std::vector<T>& items) {
  return Constant::of<T>(dtype, {static_cast<int64_t>(items.size())}, items);
}

}  // namespace

bool IntegerForm::product(int n) {
  const Node node = e.node(n);
  if (node.inputs.size() < 2 || !e.graph().is_constant(node.inputs[1])) return false;
  const ConstantPtr constant = e.value(node.inputs[1]).constant;
  const auto p = product_of(node, constant->dims());
  const QuantizedValue* x = known(node.inputs[0]);
  if (!p || x == nullptr || constant->size() == 0) return false;
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
  if (has_bias && !e.graph().is_constant(node.inputs[2])) return false;
  const auto w = integer_weights(constant, p->axis);
  if (!w) return false;

  const int consumer = quantizer(n);
  const bool clamps = p->act_min != -kInfinity || p->act_max != kInfinity;
  const size_t channels = w->scales.size();
  std::vector<double> bias(channels, 0);
  if (has_bias) bias = e.value(node.inputs[2]).constant->as_doubles();
  std::vector<double> scales = w->scales;
  const double reach = static_cast<double>(std::max(quant_range(x->params.type).max - x->params.zero_point,
                                                    x->params.zero_point - quant_range(x->params.type).min));

  Integers i;
  i.x_zero = x->params.zero_point, i.wide = w->wide ? 1 : 0;
  QuantParams y;
  y.type = DType::kFloat32;
  if (consumer >= 0) {
    y = params_of(consumer);
    i.y_zero = y.zero_point;
    i.q_min = p->act_min == -kInfinity ? quant_range(y.type).min : y.quantize(p->act_min);
    i.q_max = p->act_max == kInfinity ? quant_range(y.type).max : y.quantize(p->act_max);
  }
  i.to = static_cast<int64_t>(y.type);
  std::vector<float> multipliers;
  std::vector<int64_t> sums;
  const bool narrow = x->params.type == DType::kInt8;
  for (size_t c = 0; c < channels; ++c) {
    // A channel without weights is its bias, in steps of the result or fine ones.
    if (scales[c] == 0)
      scales[c] =
          (consumer >= 0 ? y.scale : std::max(std::fabs(bias[c]) * 0x1p-24, 0x1p-60)) / x->params.scale;
    const double step = x->params.scale * scales[c];
    const double b = std::nearbyint(bias[c] / step);
    if (!(std::fabs(b) + w->magnitudes[c] * reach <= (narrow ? kMostSum : 0x1p52))) return false;
    const double m = step / y.scale;
    if (consumer >= 0 && !is_product_multiplier(m)) return false;
    sums.push_back(static_cast<int64_t>(b));
    multipliers.push_back(static_cast<float>(m));
  }

  const std::string name = e.value(node.inputs[1]).name;
  const auto add = [&](ConstantPtr c, const char* what) {
    return e.graph().add_constant(std::move(c), name.empty() ? name : name + what);
  };
  std::vector<ValueId> inputs = {x->q, add(w->q, ""), kAbsent,
                                 add(vector_of(DType::kFloat32, multipliers), ".multipliers")};
  if (narrow) {
    const std::vector<int32_t> small(sums.begin(), sums.end());
    inputs[2] = add(vector_of(DType::kInt32, small), ".bias");
  } else {
    inputs[2] = add(vector_of(DType::kInt64, sums), ".bias");
  }
  if (!w->zeros.empty()) inputs.push_back(add(vector_of(DType::kInt8, w->zeros), ".zeros"));
  if (consumer < 0 && !clamps) {
    e.replace(n, integer_attrs(node, i), inputs);
    return true;
  }
  const ValueId q = e.insert(n, integer_attrs(node, i), inputs);
  if (consumer < 0 && q != kAbsent) {
    e.replace(n, ClampAttrs{p->act_min, p->act_max}, {q});
    return true;
  }
  if (q == kAbsent) return false;
  settle(consumer, q);
  return true;
}

bool IntegerForm::matrix_product(int n) {
  const Node node = e.node(n);
  const auto* m = node.as<MatMulAttrs>();
  if (m == nullptr) return false;
  if (known(node.inputs[0]) == nullptr && known(node.inputs[1]) == nullptr) return false;
  const bool wide = any_wide(node.inputs);
  if (!has_integer_row(e.graph(), node, wide ? DType::kInt16 : DType::kInt8)) return false;
  auto a = integers(node.inputs[0], wide), b = integers(node.inputs[1], wide);
  if (!a || !b) return false;
  const QuantizedValue* const operands[] = {&*a, &*b};
  const auto common = common_result(a->params, operands);
  if (!common || !to_type(n, common->type, &*a) || !to_type(n, common->type, &*b)) return false;
  const int consumer = quantizer(n);
  QuantParams y;
  y.type = DType::kFloat32;
  QMatMulAttrs q{};
  if (consumer >= 0) {
    y = params_of(consumer);
    q.y_zero = y.zero_point, q.q_min = quant_range(y.type).min, q.q_max = quant_range(y.type).max;
  }
  q.transpose_a = m->transpose_a, q.transpose_b = m->transpose_b;
  q.x_zero = a->params.zero_point, q.b_zero = b->params.zero_point, q.to = static_cast<int64_t>(y.type);
  q.multiplier = static_cast<float>(a->params.scale * b->params.scale / y.scale);
  if (consumer >= 0 && !is_product_multiplier(q.multiplier)) return false;
  const std::vector<ValueId> inputs = {a->q, b->q};
  if (consumer < 0) {
    e.replace(n, q, inputs);
    return true;
  }
  const ValueId result = e.insert(n, q, inputs);
  if (result == kAbsent) return false;
  settle(consumer, result);
  return true;
}

}  // namespace sinter::convert
