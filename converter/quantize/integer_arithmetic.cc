// Sums, products, means and softmax of known values become the integer operations of the same name.
#include <algorithm>
#include <cmath>

#include "converter/quantize/integer_form.h"
#include "converter/quantize/integer_weights.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kMostMultiplier = 1 << 14;     // of the int8 rows
constexpr double kMostSumMultiplier = 1 << 21;  // of QAdd
constexpr int64_t kMostSummed = 1 << 23;
constexpr int64_t kMostSoftmax = 65536;

// The result's zero point and bounds in an integer row's attributes, with the float row's clamp.
template <class Q>
void give_result(Q& q, const QuantParams& y, double act_min = -kInfinity, double act_max = kInfinity) {
  q.y_zero = y.zero;
  q.q_min = act_min == -kInfinity ? -128 : y.quantize(act_min);
  q.q_max = act_max == kInfinity ? 127 : y.quantize(act_max);
}

bool usable(double multiplier) { return multiplier > 0 && multiplier <= kMostMultiplier; }

// The integer multipliers of a sum, as exact as they can be: results then differ from the float sum's only
// within 2^-12 of a tie. (Multipliers of 15 bits are a fifth
// faster, but then 16 % of ic-resnet8-qdq's outputs on noise differ from onnxruntime's instead of 1 %.)
std::optional<QAddAttrs> sum_of(double a, double b) {
  const double larger = std::max(std::fabs(a), std::fabs(b));
  if (!(larger > 0x1p-20) || larger > kMostSumMultiplier) return std::nullopt;
  QAddAttrs q{};
  while (q.shift < 30 &&
         std::nearbyint(larger * std::ldexp(1.0, static_cast<int>(q.shift) + 1)) <= kMostSumMultiplier)
    ++q.shift;
  const double unit = std::ldexp(1.0, static_cast<int>(q.shift));
  q.a_multiplier = static_cast<int64_t>(std::nearbyint(a * unit));
  q.b_multiplier = static_cast<int64_t>(std::nearbyint(b * unit));
  return q;
}

}  // namespace

// The integers of an operand: those that are known, or a constant that has some.
std::optional<QuantizedValue> IntegerForm::integers(ValueId id) {
  if (const QuantizedValue* x = known(id)) {
    if (x->params.type != DType::kInt8) return std::nullopt;
    return *x;
  }
  if (id < 0 || !e.graph().is_constant(id) || e.value(id).dtype != DType::kFloat32) return std::nullopt;
  const ConstantPtr c = e.value(id).constant;
  if (c->size() == 0) return std::nullopt;
  // With its recipe, if it has one.
  std::vector<ConstantPtr> row;
  if (!evaluate(ViewAttrs{IntList{1, c->size()}, -1}, {c}, 1, &row).ok()) return std::nullopt;
  const auto w = integer_weights(row[0], 0);
  if (!w) return std::nullopt;
  QuantizedValue x;
  x.params = {DType::kInt8, w->scales[0] > 0 ? w->scales[0] : 1.0, w->zeros.empty() ? 0 : w->zeros[0]};
  x.q = e.graph().add_constant(Constant::of<int8_t>(DType::kInt8, c->dims(), w->q), e.value(id).name);
  return x;
}

// The integer row of node n before its quantizer.
bool IntegerForm::give(int n, int consumer, OpAttrs attrs, std::vector<ValueId> inputs) {
  const ValueId q = e.insert(n, std::move(attrs), std::move(inputs));
  if (q == kAbsent) return false;
  settle(consumer, q);
  return true;
}

bool IntegerForm::arithmetic(int n) {
  const Node node = e.node(n);
  const bool binary =
      node.inputs.size() == 2 && (node.as<AddAttrs>() || node.as<SubAttrs>() || node.as<MulAttrs>());
  const int consumer = binary ? int8_quantizer(n) : -1;
  if (consumer < 0) return false;
  const QuantParams y = params_of(consumer);
  if (known(node.inputs[0]) == nullptr && known(node.inputs[1]) == nullptr) return false;
  const auto a = integers(node.inputs[0]), b = integers(node.inputs[1]);
  if (!a || !b) return false;
  if (const auto* mul = node.as<MulAttrs>()) {
    const double m = a->params.scale * b->params.scale / y.scale;
    if (!usable(m)) return false;
    QMulAttrs q{};
    q.a_zero = a->params.zero, q.b_zero = b->params.zero, q.multiplier = static_cast<float>(m);
    give_result(q, y, mul->act_min, mul->act_max);
    return give(n, consumer, q, {a->q, b->q});
  }
  const auto* add = node.as<AddAttrs>();
  const auto* sub = node.as<SubAttrs>();
  auto q = sum_of(a->params.scale / y.scale, (add != nullptr ? 1 : -1) * b->params.scale / y.scale);
  if (!q) return false;
  q->a_zero = a->params.zero, q->b_zero = b->params.zero;
  give_result(*q, y, add != nullptr ? add->act_min : sub->act_min,
              add != nullptr ? add->act_max : sub->act_max);
  return give(n, consumer, *q, {a->q, b->q});
}

bool IntegerForm::mean(int n) {
  const Node node = e.node(n);
  const auto* pool = node.as<AvgPoolAttrs>();
  const auto* reduce = node.as<ReduceAttrs>();
  const auto fn = reduce != nullptr ? static_cast<ReduceFn>(reduce->fn) : ReduceFn::kProd;
  if (pool == nullptr && fn != ReduceFn::kMean && fn != ReduceFn::kSum) return false;
  const QuantizedValue* x = known(node.inputs[0]);
  const int consumer = int8_quantizer(n);
  if (x == nullptr || x->params.type != DType::kInt8 || consumer < 0) return false;
  const QuantParams y = params_of(consumer);
  int64_t count = 1;
  if (pool != nullptr) {
    for (const int64_t k : pool->kernel) count *= k;
  } else {
    const Dims& dims = e.value(node.inputs[0]).dims;
    for (const int64_t axis : reduce->axes) count *= dims[static_cast<size_t>(axis)];
  }
  const double m = x->params.scale / y.scale * (fn == ReduceFn::kSum ? static_cast<double>(count) : 1);
  if (count < 1 || count > kMostSummed || !usable(m)) return false;
  if (pool != nullptr) {
    QAvgPoolAttrs q{};
    q.kernel = pool->kernel, q.strides = pool->strides, q.dilations = pool->dilations, q.pads = pool->pads;
    q.ceil_mode = pool->ceil_mode, q.count_include_pad = pool->count_include_pad;
    q.x_zero = x->params.zero, q.multiplier = m;
    give_result(q, y);
    return give(n, consumer, q, {x->q});
  }
  QMeanAttrs q{};
  q.axes = reduce->axes, q.keepdims = reduce->keepdims, q.x_zero = x->params.zero, q.multiplier = m;
  give_result(q, y);
  return give(n, consumer, q, {x->q});
}

bool IntegerForm::prelu(int n) {
  const Node node = e.node(n);
  if (node.as<PReluAttrs>() == nullptr || !e.graph().is_constant(node.inputs[1])) return false;
  const QuantizedValue* x = known(node.inputs[0]);
  const int consumer = int8_quantizer(n);
  if (x == nullptr || x->params.type != DType::kInt8 || consumer < 0) return false;
  const QuantParams y = params_of(consumer);
  const Value& slope = e.value(node.inputs[1]);
  const Dims& dims = e.value(node.inputs[0]).dims;
  const int64_t count = slope.constant->size();
  const bool last_axis =
      !dims.empty() && !slope.dims.empty() && slope.dims.back() == count && dims.back() == count;
  if (count != 1 && !last_axis) return false;
  QPReluAttrs q{};
  q.x_zero = x->params.zero, q.multiplier = static_cast<float>(x->params.scale / y.scale);
  if (!usable(q.multiplier)) return false;
  std::vector<float> slopes;
  for (const double s : slope.constant->as_doubles()) {
    slopes.push_back(static_cast<float>(x->params.scale * s / y.scale));
    if (!(std::fabs(slopes.back()) <= kMostMultiplier)) return false;
  }
  give_result(q, y);
  const ValueId values =
      e.graph().add_constant(Constant::of<float>(DType::kFloat32, {count}, slopes), slope.name);
  return give(n, consumer, q, {x->q, values});
}

bool IntegerForm::softmax(int n) {
  const Node node = e.node(n);
  const auto* a = node.as<SoftmaxAttrs>();
  if (a == nullptr || a->log != 0) return false;
  const QuantizedValue* x = known(node.inputs[0]);
  const int consumer = int8_quantizer(n);
  const Dims& dims = e.value(node.inputs[0]).dims;
  if (x == nullptr || x->params.type != DType::kInt8 || consumer < 0 ||
      dims[static_cast<size_t>(a->axis)] > kMostSoftmax)
    return false;
  const QuantParams y = params_of(consumer);
  QSoftmaxAttrs q{};
  q.axis = a->axis;
  constexpr double kMost = 1 << 24;
  q.multiplier = 256, q.shift = 0;
  if (y.scale != 0x1p-8) {
    q.shift = 16;
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
