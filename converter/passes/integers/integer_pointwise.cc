// Whatever is a function of one int8 value, element by element, becomes one table of 256 results:
// activations, arithmetic with constants, x * sigmoid(x) in any writing, and what was rounded to integers
// between. A function of int16 becomes a table that is interpolated.
#include <algorithm>
#include <cmath>

#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "runtime/core/integer_limits.h"

namespace sinter::convert {
namespace {

constexpr int64_t kEntries = 256;
constexpr int kMostTableNodes = 24;  // that one table replaces

constexpr int64_t kWideEntries = 65537;  // of int16, and one more: the end of the last interval
// Steps by which an interpolated function may be wrong, before rounding: of a model that was given with
// results of int16, and of any other (a result of int8 is interpolated in 128ths of its step).
constexpr double kFinest = 0.5, kMostWrong = 64;

std::vector<int8_t> all_int8() {
  std::vector<int8_t> q(kEntries);
  for (int64_t i = 0; i < kEntries; ++i) q[static_cast<size_t>(i)] = static_cast<int8_t>(i - 128);
  return q;
}

}  // namespace

// The values of a float (or integer) value of the graph for each of the root's integers.
class IntegerForm::Pointwise {
 public:
  explicit Pointwise(IntegerForm& form) : f_(form) {}

  // [256], [65537] or one element; null: no function of one root.
  ConstantPtr values(ValueId id) {
    if (const auto at = done_.find(id); at != done_.end()) return at->second;
    ConstantPtr result = compute(id);
    done_[id] = result;
    return result;
  }
  ValueId root() const { return root_; }
  // Nodes of the graph that the function takes, and whether any computes.
  int nodes() const { return nodes_; }

 private:
  ConstantPtr compute(ValueId id) {
    if (id < 0) return nullptr;
    Editor& e = f_.e;
    const Value& v = e.value(id);
    if (v.constant) return v.constant->size() == 1 ? v.constant->reshaped({}) : nullptr;
    if (const QuantizedValue* known = f_.known(id)) return leaf(*known);
    const int n = e.producer(id);
    if (n < 0 || e.erased(n) || !v.bounded_dims.empty() || ++nodes_ > kMostTableNodes) return nullptr;
    const Node& node = e.node(n);
    const bool quantizes = quant_params(e.graph(), node).has_value();
    if (node.outputs.size() != 1 || !node.bodies.empty() || (!quantizes && !is_elementwise(node.op())))
      return nullptr;
    std::vector<ConstantPtr> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(values(input));
      if (!inputs.back() || (!e.value(input).constant && e.value(input).dims != v.dims)) return nullptr;
    }
    std::vector<ConstantPtr> results;
    return evaluate(node.attrs, inputs, 1, &results, false).ok() ? results[0] : nullptr;
  }

  // Follows tables back to what they were looked up with.
  ConstantPtr leaf(const QuantizedValue& known) {
    if (known.params.type == DType::kInt16) {
      if (known.params.zero_point != 0 || (root_ != kAbsent && root_ != known.q)) return nullptr;
      root_ = known.q;
      std::vector<float> numbers;
      for (int64_t i = -32768; i <= 32768; ++i)
        numbers.push_back(static_cast<float>(i) * static_cast<float>(known.params.scale));
      return Constant::of<float>(DType::kFloat32, {kWideEntries}, numbers);
    }
    std::vector<int8_t> q = all_int8();
    ValueId root = known.q;
    if (const auto at = f_.tables_.find(known.q); at != f_.tables_.end())
      root = at->second.root, q = at->second.table;
    if (root_ != kAbsent && root != root_) return nullptr;
    root_ = root;
    std::vector<float> numbers;
    for (const int8_t item : q)
      numbers.push_back(static_cast<float>(item - known.params.zero_point) *
                        static_cast<float>(known.params.scale));
    return Constant::of<float>(DType::kFloat32, {kEntries}, numbers);
  }

  IntegerForm& f_;
  ValueId root_ = kAbsent;
  int nodes_ = 0;
  std::map<ValueId, ConstantPtr> done_;
};

ValueId IntegerForm::look_up(int n, ValueId root, const std::vector<int8_t>& table) {
  if (table == all_int8()) return root;
  const ValueId entries = e.constant(Constant::of<int8_t>(DType::kInt8, {kEntries}, table));
  const ValueId q = e.insert(n, LutAttrs{}, {root, entries});
  if (q != kAbsent) tables_[q] = {root, table};
  return q;
}

namespace {

// Entries of a QTable for the values of a function at all int16, in steps: the fewest that are right within
// half a step everywhere, else the most if they are right within `most_wrong`; empty: they are not.
std::vector<int32_t> interpolated(const std::vector<double>& steps, double most_wrong) {
  const auto within = [](double v) { return std::clamp(v, -32768.0, 32767.0); };
  std::vector<int32_t> entries;
  for (int k = 8; k <= 12; ++k) {
    const size_t width = size_t{65536} >> k;
    const double unit = std::ldexp(1.0, k - 1), limit = max_table_entry(k) / unit;
    entries.clear();
    for (size_t i = 0; i <= 65536; i += width)
      entries.push_back(static_cast<int32_t>(std::nearbyint(std::clamp(steps[i], -limit, limit) * unit)));
    double worst = 0;
    for (size_t i = 0; i < 65536; ++i) {
      const double f = static_cast<double>(i % width) / static_cast<double>(width),
                   v = (entries[i / width] * (1 - f) + entries[i / width + 1] * f) / unit;
      worst = std::max(worst, std::fabs(within(v) - within(steps[i])));
    }
    if (worst <= kFinest) return entries;
    if (k == 12 && !(worst <= most_wrong)) entries.clear();
  }
  return entries;
}

}  // namespace

// To or from int16.
bool IntegerForm::wide_pointwise(int n, int consumer, ValueId root, const ConstantPtr& values) {
  const QuantParams y = params_of(consumer);
  if (y.type == DType::kInt16 && y.zero_point != 0) return false;
  const QuantParams fine = y.type == DType::kInt16 ? y : finer(y);
  std::vector<double> steps;
  for (const double v : values->as_doubles()) {
    if (std::isnan(v)) return false;
    steps.push_back(std::clamp(v / fine.scale, -1e9, 1e9));
  }
  if (values->size() == kEntries) {
    std::vector<int16_t> table;
    for (const double s : steps)
      table.push_back(static_cast<int16_t>(QuantParams{DType::kInt16, 1, 0}.quantize(s)));
    return give(n, consumer, LutAttrs{},
                {root, e.constant(Constant::of<int16_t>(DType::kInt16, {kEntries}, table))});
  }
  bool same = y.type == DType::kInt16;
  for (size_t i = 0; same && i < 65536; ++i)
    same = std::fabs(steps[i] - (static_cast<double>(i) - 32768)) < 0.01;
  if (same) return settle(consumer, root), true;
  const bool given = !rounded_here_ && y.type == DType::kInt16;
  const std::vector<int32_t> entries = interpolated(steps, given ? kFinest : kMostWrong);
  if (entries.empty()) return false;
  return give(n, consumer, QTableAttrs{-32768, 32767},
              {root, e.constant(Constant::of<int32_t>(DType::kInt32, {static_cast<int64_t>(entries.size())},
                                                      entries))});
}

bool IntegerForm::pointwise(int n) {
  const int consumer = quantizer(n);
  if (consumer < 0) return false;
  const QuantParams y = params_of(consumer);
  Pointwise function(*this);
  const ConstantPtr values = function.values(e.node(n).outputs[0]);
  if (!values || values->size() < kEntries ||
      e.value(function.root()).dims != e.value(e.node(n).outputs[0]).dims)
    return false;
  if (y.type == DType::kInt16 || values->size() != kEntries)
    return wide_pointwise(n, consumer, function.root(), values);
  std::vector<int8_t> table;
  for (const double v : values->as_doubles()) {
    // As the Quantize would: in float32; NaN is the zero point.
    const float x = static_cast<float>(v) / static_cast<float>(y.scale);
    table.push_back(
        static_cast<int8_t>(std::isnan(x) ? y.zero_point : QuantParams{y.type, 1, y.zero_point}.quantize(x)));
  }
  const ValueId q = look_up(n, function.root(), table);
  if (q == kAbsent) return false;
  settle(consumer, q);
  return true;
}

// The integers of a known value under other parameters.
ValueId IntegerForm::requantized(int n, const QuantizedValue& x, const QuantParams& y) {
  if (x.params == y) return x.q;
  if (x.params.type != DType::kInt8 || y.type != DType::kInt8) {
    QRequantizeAttrs q{};
    q.x_zero = x.params.zero_point, q.y_zero = y.zero_point, q.to = static_cast<int64_t>(y.type);
    q.q_min = quant_range(y.type).min, q.q_max = quant_range(y.type).max;
    q.multiplier = static_cast<float>(x.params.scale / y.scale);
    const bool fits = q.multiplier > 0 && q.multiplier <= kMaxIntegerMultiplier;
    return fits ? e.insert(n, q, {x.q}) : kAbsent;
  }
  const auto at = tables_.find(x.q);
  std::vector<int8_t> table;
  for (const int8_t q : at != tables_.end() ? at->second.table : all_int8()) {
    const float number = static_cast<float>(q - x.params.zero_point) * static_cast<float>(x.params.scale);
    table.push_back(static_cast<int8_t>(
        QuantParams{y.type, 1, y.zero_point}.quantize(number / static_cast<float>(y.scale))));
  }
  return look_up(n, at != tables_.end() ? at->second.root : x.q, table);
}

}  // namespace sinter::convert
