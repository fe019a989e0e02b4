// Sums, products, means and softmax of known values become the integer operations of the same name.
#include <algorithm>
#include <cmath>

#include "converter/ir/integer_weights.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/passes/integers/integer_rows.h"
#include "runtime/core/integer_limits.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// The result's zero point and bounds in an integer row's attributes, with the float row's clamp.
template <class Q>
void give_result(Q& q, const QuantParams& y, const Bounds& bounds = {}) {
  q.y_zero = y.zero_point;
  q.q_min = bounds.low == -kInfinity ? quant_range(y.type).min : y.quantize(bounds.low);
  q.q_max = bounds.high == kInfinity ? quant_range(y.type).max : y.quantize(bounds.high);
}

bool usable(double multiplier) { return multiplier > 0 && multiplier <= kMaxIntegerMultiplier; }

// The integer multipliers of a sum, as exact as they can be: results then differ from the float sum's only
// within 2^-12 of a tie. (Multipliers of 15 bits are a fifth
// faster, but then 16 % of ic-resnet8-qdq's outputs on noise differ from onnxruntime's instead of 1 %.)
std::optional<QAddAttrs> sum_of(double a, double b) {
  const double larger = std::max(std::fabs(a), std::fabs(b));
  constexpr auto kMost = static_cast<double>(kMaxAddMultiplier);
  if (!(larger > 0x1p-20) || larger > kMost) return std::nullopt;
  QAddAttrs q{};
  while (q.shift < kMaxAddShift &&
         std::nearbyint(larger * std::ldexp(1.0, static_cast<int>(q.shift) + 1)) <= kMost)
    ++q.shift;
  const double unit = std::ldexp(1.0, static_cast<int>(q.shift));
  q.a_multiplier = static_cast<int64_t>(std::nearbyint(a * unit));
  q.b_multiplier = static_cast<int64_t>(std::nearbyint(b * unit));
  return q;
}

}  // namespace

std::optional<QuantParams> IntegerForm::common_result(const QuantParams& y,
                                                      std::span<const QuantizedValue* const> operands) {
  const auto symmetric = [](const QuantParams& p) { return p.type == DType::kInt8 || p.zero_point == 0; };
  bool wide = y.type == DType::kInt16, possible = symmetric(y);
  for (const QuantizedValue* x : operands)
    wide |= x->params.type == DType::kInt16, possible &= symmetric(x->params);
  if (!possible) return std::nullopt;
  if (!wide || y.type == DType::kInt16) return y;
  return finer(y);
}

bool IntegerForm::to_type(int n, DType type, QuantizedValue* x) {
  if (x->params.type == type) return true;
  const QuantParams wide = finer(x->params);
  x->q = type == DType::kInt16 ? requantized(n, *x, wide) : kAbsent;
  x->params = wide;
  return x->q != kAbsent;
}

bool IntegerForm::any_wide(const std::vector<ValueId>& inputs) const {
  return std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) {
    const QuantizedValue* x = known(id);
    return x != nullptr && x->params.type == DType::kInt16;
  });
}

// The integers of an operand: those that are known, or a constant that has some; `wide`: or gets
// int16, with a rounding that only a graph rounded here allows.
std::optional<QuantizedValue> IntegerForm::integers(ValueId id, bool wide) {
  if (const QuantizedValue* x = known(id)) return *x;
  if (id < 0 || !e.graph().is_constant(id) || e.value(id).dtype != DType::kFloat32) return std::nullopt;
  const ConstantPtr c = e.value(id).constant;
  if (c->size() == 0) return std::nullopt;
  // With its recipe, if it has one.
  std::vector<ConstantPtr> row;
  if (!evaluate(ViewAttrs{IntList{1, c->size()}, -1}, {c}, 1, &row).ok()) return std::nullopt;
  const auto w = integer_weights(row[0], 0);
  QuantizedValue x;
  if (!w) {
    if (!wide || !rounded_here_) return std::nullopt;
    const std::vector<double> items = c->as_doubles();
    double largest = 0;
    for (const double item : items) largest = std::max(largest, std::fabs(item));
    if (!(largest > 1e-30) || !(largest < 1e30)) return std::nullopt;
    x.params = {DType::kInt16, static_cast<double>(static_cast<float>(largest / 32767)), 0};
    std::vector<int16_t> q;
    for (const double item : items) q.push_back(static_cast<int16_t>(x.params.quantize(item)));
    x.q = e.graph().add_constant(Constant::of<int16_t>(DType::kInt16, c->dims(), q), e.value(id).name);
    return x;
  }
  x.params = {DType::kInt8, w->scales[0] > 0 ? w->scales[0] : 1.0, w->zeros.empty() ? 0 : w->zeros[0]};
  x.q = e.graph().add_constant(w->q->reshaped(c->dims()), e.value(id).name);
  return x;
}

// The integer row of node n before its quantizer; what is finer than the quantizer's becomes that.
bool IntegerForm::give(int n, int consumer, OpAttrs attrs, std::vector<ValueId> inputs) {
  ValueId q = e.insert(n, std::move(attrs), std::move(inputs));
  if (const QuantParams y = params_of(consumer);
      q != kAbsent && y.type == DType::kInt8 && e.value(q).dtype == DType::kInt16)
    q = requantized(n, {q, finer(y)}, y);
  if (q == kAbsent) return false;
  settle(consumer, q);
  return true;
}

bool IntegerForm::arithmetic(int n) {
  const Node node = e.node(n);
  const bool binary =
      node.inputs.size() == 2 && (node.as<AddAttrs>() || node.as<SubAttrs>() || node.as<MulAttrs>());
  const int consumer = binary ? quantizer(n) : -1;
  if (consumer < 0) return false;
  if (known(node.inputs[0]) == nullptr && known(node.inputs[1]) == nullptr) return false;
  const bool wide = params_of(consumer).type == DType::kInt16 || any_wide(node.inputs);
  auto a = integers(node.inputs[0], wide), b = integers(node.inputs[1], wide);
  if (!a || !b) return false;
  const QuantizedValue* const operands[] = {&*a, &*b};
  const auto common = common_result(params_of(consumer), operands);
  if (!common || !to_type(n, common->type, &*a) || !to_type(n, common->type, &*b)) return false;
  const QuantParams& y = *common;
  if (node.op() == Op::kMul) {
    const double m = a->params.scale * b->params.scale / y.scale;
    if (!usable(m)) return false;
    QMulAttrs q{};
    q.a_zero = a->params.zero_point, q.b_zero = b->params.zero_point, q.multiplier = static_cast<float>(m);
    give_result(q, y, clamp_of(node));
    return give(n, consumer, q, {a->q, b->q});
  }
  auto q = sum_of(a->params.scale / y.scale, (node.op() == Op::kAdd ? 1 : -1) * b->params.scale / y.scale);
  if (!q) return false;
  q->a_zero = a->params.zero_point, q->b_zero = b->params.zero_point;
  give_result(*q, y, clamp_of(node));
  return give(n, consumer, *q, {a->q, b->q});
}

std::optional<IntegerForm::OneOperand> IntegerForm::one_operand(int n) {
  const QuantizedValue* given = known(e.node(n).inputs[0]);
  const int consumer = quantizer(n);
  if (given == nullptr || consumer < 0) return std::nullopt;
  const auto y = common_result(params_of(consumer), std::span(&given, 1));
  QuantizedValue x = *given;
  if (!y || !to_type(n, y->type, &x)) return std::nullopt;
  return OneOperand{x, *y, consumer};
}

bool IntegerForm::mean(int n) {
  const Node node = e.node(n);
  const auto* pool = node.as<AvgPoolAttrs>();
  const auto* reduce = node.as<ReduceAttrs>();
  const int64_t count = summed_elements(e.graph(), node);
  if (count < 1) return false;
  const bool sum = reduce != nullptr && static_cast<ReduceFn>(reduce->fn) == ReduceFn::kSum;
  const auto operand = one_operand(n);
  if (!operand) return false;
  const auto& [x, y, consumer] = *operand;
  const double m = x.params.scale / y.scale * (sum ? static_cast<double>(count) : 1);
  if (!has_integer_row(e.graph(), node, y.type) || !usable(m)) return false;
  if (pool != nullptr) {
    QAvgPoolAttrs q{};
    q.kernel = pool->kernel, q.strides = pool->strides, q.dilations = pool->dilations, q.pads = pool->pads;
    q.ceil_mode = pool->ceil_mode, q.count_include_pad = pool->count_include_pad;
    q.x_zero = x.params.zero_point, q.multiplier = m;
    give_result(q, y);
    return give(n, consumer, q, {x.q});
  }
  QMeanAttrs q{};
  q.axes = reduce->axes, q.keepdims = reduce->keepdims, q.x_zero = x.params.zero_point, q.multiplier = m;
  give_result(q, y);
  return give(n, consumer, q, {x.q});
}

bool IntegerForm::prelu(int n) {
  const Node node = e.node(n);
  if (node.as<PReluAttrs>() == nullptr || !has_integer_row(e.graph(), node, DType::kInt8)) return false;
  const auto operand = one_operand(n);
  if (!operand) return false;
  const auto& [x, y, consumer] = *operand;
  const Value slope = e.value(node.inputs[1]);
  const int64_t count = slope.constant->size();
  QPReluAttrs q{};
  q.x_zero = x.params.zero_point, q.multiplier = static_cast<float>(x.params.scale / y.scale);
  if (!usable(q.multiplier)) return false;
  std::vector<float> slopes;
  for (const double s : slope.constant->as_doubles()) {
    slopes.push_back(static_cast<float>(x.params.scale * s / y.scale));
    if (!(std::fabs(slopes.back()) <= kMaxIntegerMultiplier)) return false;
  }
  give_result(q, y);
  const ValueId values =
      e.graph().add_constant(Constant::of<float>(DType::kFloat32, {count}, slopes), slope.name);
  return give(n, consumer, q, {x.q, values});
}

bool IntegerForm::softmax(int n) {
  const Node node = e.node(n);
  const auto* a = node.as<SoftmaxAttrs>();
  if (a == nullptr || !has_integer_row(e.graph(), node, DType::kInt8)) return false;
  const QuantizedValue* x = known(node.inputs[0]);
  const int consumer = int8_quantizer(n);
  if (x == nullptr || x->params.type != DType::kInt8 || consumer < 0) return false;
  const QuantParams y = params_of(consumer);
  QSoftmaxAttrs q{};
  q.axis = a->axis;
  constexpr auto kMost = static_cast<double>(kMaxSoftmaxMultiplier);
  q.multiplier = 256, q.shift = 0;
  if (y.scale != 0x1p-8) {
    q.shift = kMaxSoftmaxShift;
    while (q.shift > 0 && std::ldexp(1 / y.scale, static_cast<int>(q.shift)) > kMost) --q.shift;
    const double m = std::nearbyint(std::ldexp(1 / y.scale, static_cast<int>(q.shift)));
    if (m < 1 || m > kMost) return false;
    q.multiplier = static_cast<int64_t>(m);
  }
  give_result(q, y);
  std::vector<uint32_t> table;
  for (int d = 0; d < 256; ++d)
    table.push_back(static_cast<uint32_t>(std::nearbyint(0x1p31 * std::exp(-d * x->params.scale))));
  const ValueId entries = e.constant(Constant::of<uint32_t>(DType::kUint32, {256}, table));
  return give(n, consumer, q, {x->q, entries});
}

}  // namespace sinter::convert
