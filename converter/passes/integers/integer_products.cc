// Convolutions and fully connected layers with known inputs and constant weights become integer products.
#include <algorithm>
#include <cmath>

#include "converter/ir/integer_weights.h"
#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/passes/integers/integer_rows.h"
#include "converter/passes/integers/product_bias.h"
#include "runtime/core/integer_limits.h"

namespace sinter::convert {
namespace {

constexpr double kMostSum = 0x1p31 - 1;  // of an int32 accumulator
constexpr double kMostWideSum = 0x1p52;  // of an int64 accumulator
constexpr double kMostMoved = 1.0 / 64;  // steps by which the bias may move an integer result

template <class Q>
Q with(Q q, const ProductIntegers& i) {
  q.x_zero = i.x_zero, q.y_zero = i.y_zero, q.q_min = i.q_min, q.q_max = i.q_max, q.to = i.to;
  q.wide_weights = i.wide;
  return q;
}

// The result's zero point and bounds: those of the type, of the product's own clamp, and of one behind.
void set_bounds(const Bounds& own, const QuantParams& y, const ClampAttrs* behind, ProductIntegers* i) {
  const QuantRange range = quant_range(y.type);
  i->y_zero = y.zero_point;
  i->q_min = own.low == -kInfinity ? range.min : y.quantize(own.low);
  i->q_max = own.high == kInfinity ? range.max : y.quantize(own.high);
  if (behind == nullptr) return;
  const auto within = [&](int64_t q) {
    return static_cast<int64_t>(std::clamp(static_cast<double>(q), behind->min, behind->max));
  };
  i->q_min = within(i->q_min), i->q_max = within(i->q_max);
}

// The weights' integers, sums and multipliers of a product; an entry for each channel.
struct Sums {
  ConstantPtr weights;
  bool wide = false;
  std::vector<int8_t> zeros;
  std::vector<int64_t> bias;
  std::vector<float> multipliers;
  double error = 0;  // KeptBias::error, of the channel with the largest
};

// How often the weights of each channel can be doubled within int8.
std::vector<int> doublings_of(const IntegerWeights& w, int64_t axis, std::span<const int8_t> q) {
  const Channels channels(w.q->dims(), axis);
  std::vector<int> result(channels.count(), 0);
  for (size_t c = 0; c < channels.count(); ++c) {
    const int zero = w.zeros.empty() ? 0 : w.zeros[c];
    int largest = 1;
    channels.each(c, q.size(), [&](size_t i) { largest = std::max(largest, std::abs(q[i] - zero)); });
    while (largest << (result[c] + 1) <= 127) ++result[c];
  }
  return result;
}

// The weights with those of channel c doubled doublings[c] times, which then have no zero point.
void double_weights(int64_t axis, std::vector<int8_t> q, const std::vector<int>& doublings, Sums* sums) {
  const Dims dims = sums->weights->dims();
  const Channels channels(dims, axis);
  for (size_t c = 0; c < channels.count(); ++c) {
    if (doublings[c] == 0) continue;
    const int zero = sums->zeros.empty() ? 0 : sums->zeros[c], factor = 1 << doublings[c];
    channels.each(c, q.size(), [&](size_t i) { q[i] = static_cast<int8_t>((q[i] - zero) * factor); });
    if (zero != 0) sums->zeros[c] = 0;
  }
  if (std::all_of(sums->zeros.begin(), sums->zeros.end(), [](int8_t z) { return z == 0; }))
    sums->zeros.clear();
  sums->wide = std::find(q.begin(), q.end(), -128) != q.end();
  sums->weights = Constant::of<int8_t>(DType::kInt8, dims, q);
}

std::vector<int8_t> bytes_of(const Constant& c) {
  const LoadedBytes loaded = c.load();
  const auto* q = reinterpret_cast<const int8_t*>(loaded.bytes.data());
  return {q, q + loaded.bytes.size()};
}

// nullopt: some sum may leave the accumulator, or a multiplier its limits. `i` has the bounds of an integer
// result. `rounds`: biases become whole steps.
std::optional<Sums> sums_of(const IntegerWeights& w, int64_t axis, const QuantParams& x, const QuantParams& y,
                            const ProductIntegers& i, const std::vector<double>& bias, bool rounds) {
  const bool integer = y.type != DType::kFloat32;
  const auto reach = static_cast<double>(
      std::max(quant_range(x.type).max - x.zero_point, x.zero_point - quant_range(x.type).min));
  Sums sums{w.q, w.wide, w.zeros, {}, {}, 0};
  std::vector<int8_t> q;
  std::vector<int> possible, doublings(w.scales.size(), 0);
  for (size_t c = 0; c < w.scales.size(); ++c) {
    // A channel without weights is its bias, in steps of the result or fine ones.
    const double scale =
        w.scales[c] != 0 ? w.scales[c] : empty_channel_scale(bias[c], x.scale, integer ? y.scale : 0);
    const double step = x.scale * scale, m = step / y.scale;
    if (integer && !is_product_multiplier(m)) return std::nullopt;
    ChannelProduct channel{bias[c] / step, w.magnitudes[c] * reach,
                           x.type == DType::kInt8 ? kMostSum : kMostWideSum};
    if (!(std::fabs(channel.bias) + channel.reach <= channel.most)) return std::nullopt;
    if (integer)
      channel.multiplier = m, channel.least = i.q_min - i.y_zero, channel.largest = i.q_max - i.y_zero;
    KeptBias kept = rounds ? KeptBias{0, std::nearbyint(channel.bias), 0} : keep_bias(channel);
    if (kept.error > 0 && w.magnitudes[c] > 0) {
      if (q.empty()) q = bytes_of(*w.q), possible = doublings_of(w, axis, q);
      channel.doublings = possible[c];
      while (integer && channel.doublings > 0 && !is_product_multiplier(std::ldexp(m, -channel.doublings)))
        --channel.doublings;
      kept = keep_bias(channel);
    }
    doublings[c] = kept.doublings;
    sums.error = std::max(sums.error, kept.error);
    sums.bias.push_back(static_cast<int64_t>(kept.sum));
    sums.multipliers.push_back(static_cast<float>(std::ldexp(m, -kept.doublings)));
  }
  if (std::any_of(doublings.begin(), doublings.end(), [](int k) { return k > 0; }))
    double_weights(axis, std::move(q), doublings, &sums);
  return sums;
}

}  // namespace

OpAttrs integer_product(const Node& node, const ProductIntegers& i) {
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

bool IntegerForm::product(int n) {
  const Node node = e.node(n);
  if (!is_weighted_product(node.op()) || !e.graph().is_constant(node.inputs[1])) return false;
  const ConstantPtr constant = e.value(node.inputs[1]).constant;
  const QuantizedValue* x = known(node.inputs[0]);
  if (x == nullptr || constant->size() == 0) return false;
  // The axis of the output channels in the weights.
  const int64_t axis =
      node.op() == Op::kDepthwiseConv ? static_cast<int64_t>(constant->dims().size()) - 1 : 0;
  const Bounds own = clamp_of(node);
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] >= 0;
  if (has_bias && !e.graph().is_constant(node.inputs[2])) return false;
  const auto w = integer_weights(constant, axis);
  if (!w) return false;

  int consumer = quantizer(n);
  const int clamp = consumer >= 0 ? clamp_behind(consumer) : -1;
  std::vector<double> bias(w->scales.size(), 0);
  if (has_bias) bias = e.value(node.inputs[2]).constant->as_doubles();
  ProductIntegers i;
  i.x_zero = x->params.zero_point;
  QuantParams y;
  y.type = DType::kFloat32;
  if (consumer >= 0) {
    y = params_of(consumer);
    set_bounds(own, y, clamp >= 0 ? e.node(clamp).as<ClampAttrs>() : nullptr, &i);
  }
  std::optional<Sums> sums = sums_of(*w, axis, x->params, y, i, bias, rounded_here_);
  // The bias is added to float results where the accumulator cannot hold it.
  const bool apart = sums && sums->error > (consumer >= 0 ? kMostMoved : 0);
  if (apart) {
    y = QuantParams{DType::kFloat32};
    sums = sums_of(*w, axis, x->params, y, i, std::vector<double>(bias.size(), 0), true);
    consumer = -1;
  }
  if (!sums) return false;
  i.to = static_cast<int64_t>(y.type), i.wide = sums->wide ? 1 : 0;

  const std::string name = e.value(node.inputs[1]).name;
  const auto add = [&](ConstantPtr c, const char* what) {
    return e.graph().add_constant(std::move(c), name.empty() ? name : name + what);
  };
  std::vector<ValueId> inputs = {x->q, add(sums->weights, ""), kAbsent,
                                 add(vector_of(DType::kFloat32, sums->multipliers), ".multipliers")};
  if (x->params.type == DType::kInt8) {
    const std::vector<int32_t> small(sums->bias.begin(), sums->bias.end());
    inputs[2] = add(vector_of(DType::kInt32, small), ".bias");
  } else {
    inputs[2] = add(vector_of(DType::kInt64, sums->bias), ".bias");
  }
  if (!sums->zeros.empty()) inputs.push_back(add(vector_of(DType::kInt8, sums->zeros), ".zeros"));
  if (consumer < 0 && own.none() && !apart) {
    e.replace(n, integer_product(node, i), inputs);
    return true;
  }
  const ValueId q = e.insert(n, integer_product(node, i), inputs);
  if (q == kAbsent) return false;
  if (apart) {
    e.replace(n, AddAttrs{own.low, own.high}, {q, node.inputs[2]});
  } else if (consumer < 0) {
    e.replace(n, ClampAttrs{own.low, own.high}, {q});
  } else {
    if (clamp >= 0) e.graph().value(q).name = e.value(e.node(clamp).outputs[0]).name;
    settle(consumer, q);
    if (clamp >= 0) e.bypass(clamp, q);
  }
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
