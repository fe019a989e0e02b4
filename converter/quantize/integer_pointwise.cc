// Whatever is a function of one int8 value, element by element, becomes one table of 256 results:
// activations, arithmetic with constants, x * sigmoid(x) in any writing, and what was rounded to integers
// between.
#include <algorithm>
#include <cmath>

#include "converter/quantize/integer_form.h"

namespace sinter::convert {
namespace {

constexpr int64_t kEntries = 256;
constexpr int kMostNodes = 24;  // that one table stands for

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

  // [256] or one element; null: no function of one root.
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
    if (n < 0 || e.erased(n) || !v.extents.empty() || ++nodes_ > kMostNodes) return nullptr;
    const Node& node = e.node(n);
    const bool quantizes = quant_params(e.graph(), node).has_value();
    if (node.outputs.size() != 1 || !node.bodies.empty() ||
        (!quantizes && (op_info(node.op())->traits & kElementwise) == 0))
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
    if (known.params.type != DType::kInt8) return nullptr;
    std::vector<int8_t> q = all_int8();
    ValueId root = known.q;
    if (const auto at = f_.tables_.find(known.q); at != f_.tables_.end())
      root = at->second.root, q = at->second.table;
    if (root_ != kAbsent && root != root_) return nullptr;
    root_ = root;
    std::vector<float> numbers;
    for (const int8_t item : q)
      numbers.push_back(static_cast<float>(item - known.params.zero) *
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

bool IntegerForm::pointwise(int n) {
  const int consumer = int8_quantizer(n);
  if (consumer < 0) return false;
  const QuantParams y = params_of(consumer);
  Pointwise function(*this);
  const ConstantPtr values = function.values(e.node(n).outputs[0]);
  if (!values || values->size() != kEntries ||
      e.value(function.root()).dims != e.value(e.node(n).outputs[0]).dims)
    return false;
  std::vector<int8_t> table;
  for (const double v : values->as_doubles()) {
    // As the Quantize would: in float32; NaN is the zero point.
    const float x = static_cast<float>(v) / static_cast<float>(y.scale);
    table.push_back(static_cast<int8_t>(std::isnan(x) ? y.zero : QuantParams{y.type, 1, y.zero}.quantize(x)));
  }
  const ValueId q = look_up(n, function.root(), table);
  if (q == kAbsent) return false;
  settle(consumer, q);
  return true;
}

// The integers of a known value under other parameters.
ValueId IntegerForm::requantized(int n, const QuantizedValue& x, const QuantParams& y) {
  if (x.params == y) return x.q;
  if (x.params.type != DType::kInt8 || y.type != DType::kInt8) return kAbsent;
  const auto at = tables_.find(x.q);
  std::vector<int8_t> table;
  for (const int8_t q : at != tables_.end() ? at->second.table : all_int8()) {
    const float number = static_cast<float>(q - x.params.zero) * static_cast<float>(x.params.scale);
    table.push_back(
        static_cast<int8_t>(QuantParams{y.type, 1, y.zero}.quantize(number / static_cast<float>(y.scale))));
  }
  return look_up(n, at != tables_.end() ? at->second.root : x.q, table);
}

}  // namespace sinter::convert
