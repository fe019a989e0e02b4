// Operations that only move elements, or select the largest or smallest, are computed on the integers.
#include <algorithm>
#include <cmath>

#include "converter/ir/op_traits.h"
#include "converter/passes/integers/integer_form.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

bool IntegerForm::sink(int n) {
  const Node node = e.node(n);
  const size_t moved = selected_operands(node);
  if (moved == 0) return false;
  const QuantizedValue* first = known(node.inputs[0]);
  // The largest of no elements is infinite, which no integer represents.
  if (first == nullptr || element_count(e.value(node.inputs[0]).dims) == 0) return false;
  const QuantParams params = first->params;
  std::vector<ValueId> inputs = node.inputs;
  for (size_t i = 0; i < moved; ++i) {
    const QuantizedValue* x = known(inputs[i]);
    if (x == nullptr || !(x->params == params)) return false;
    inputs[i] = x->q;
  }
  if (const auto* pad = node.as<PadAttrs>();
      pad != nullptr && static_cast<PadMode>(pad->mode) == PadMode::kConstant) {
    // The fill must be one of the numbers that the integers have, as float32 holds it.
    const auto fill = inputs.size() > 1 && inputs[1] >= 0 ? e.scalar(inputs[1]) : 0.0;
    if (!fill) return false;
    const int64_t q = params.quantize(*fill);
    const double error = static_cast<double>(q - params.zero_point) * params.scale - *fill;
    if (std::fabs(error) > 1e-6 * params.scale + 0x1p-23 * std::fabs(*fill)) return false;
    inputs.resize(1);
    inputs.push_back(e.constant(Constant::scalar_int(params.type, q)));
  }
  const ValueId q = e.insert(n, node.attrs, inputs);
  if (q == kAbsent) return false;
  dequantize(n, q, params);
  return true;
}

bool keeps_scale(const Graph& graph, const Node& node) {
  if (!joined_operands(node).empty()) return false;
  return selected_operands(node) == 1 || interpolation(graph, node).has_value();
}

std::vector<size_t> joined_operands(const Node& node) {
  const auto* elements = node.as<ScatterElementsAttrs>();
  const auto* nd = node.as<ScatterNdAttrs>();
  if ((elements != nullptr && elements->reduction == 0) || (nd != nullptr && nd->reduction == 0))
    return {0, 2};
  if (node.as<WhereAttrs>() != nullptr) return {1, 2};
  std::vector<size_t> all;
  if (node.as<ConcatAttrs>() || node.as<MinAttrs>() || node.as<MaxAttrs>())
    for (size_t i = 0; i < node.inputs.size(); ++i) all.push_back(i);
  return all;
}

bool IntegerForm::joined(int n) {
  const Node node = e.node(n);
  const std::vector<size_t> operands = joined_operands(node);
  const int consumer = operands.empty() ? -1 : quantizer(n);
  if (consumer < 0) return false;
  const QuantParams y = params_of(consumer);
  std::vector<ValueId> inputs = node.inputs;
  if (std::none_of(operands.begin(), operands.end(), [&](size_t i) { return known(inputs[i]) != nullptr; }))
    return false;
  for (const size_t i : operands) {
    const QuantizedValue* x = known(inputs[i]);
    inputs[i] = x != nullptr ? requantized(n, *x, y) : quantized_constant(inputs[i], y);
    if (inputs[i] == kAbsent) return false;
  }
  return give(n, consumer, node.attrs, inputs);
}

// The result of Quantize for a constant; kAbsent: it is not a constant.
ValueId IntegerForm::quantized_constant(ValueId id, const QuantParams& y) {
  if (!e.graph().is_constant(id) || e.value(id).dtype != DType::kFloat32) return kAbsent;
  std::vector<int64_t> q;
  for (const double x : e.value(id).constant->as_doubles()) {
    const double steps = static_cast<double>(static_cast<float>(x) / static_cast<float>(y.scale));
    q.push_back(std::isnan(x) ? y.zero_point : QuantParams{y.type, 1, y.zero_point}.quantize(steps));
  }
  std::vector<ConstantPtr> narrow;
  if (!evaluate(CastAttrs{static_cast<int64_t>(y.type), 1},
                {Constant::of<int64_t>(DType::kInt64, e.value(id).dims, q)}, 1, &narrow, false)
           .ok())
    return kAbsent;
  return e.graph().add_constant(narrow[0], e.value(id).name);
}

// Moved first and quantized then is quantized first and moved then, so that what computes meets its Quantize.
bool IntegerForm::quantized_before(int n) {
  const Node node = e.node(n);
  const int mover = e.producer(node.inputs[0]);
  if (mover < 0 || e.erased(mover) || !e.single_read(node.inputs[0])) return false;
  const Node& moves = e.node(mover);
  const Op op = moves.op();
  if ((op != Op::kView && op != Op::kTranspose && op != Op::kCopy) || selected_operands(moves) == 0 ||
      e.producer(moves.inputs[0]) < 0)
    return false;
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = moves.inputs[0];
  const ValueId q = e.insert(n, node.attrs, inputs);
  const ValueId moved = q == kAbsent ? kAbsent : e.insert(n, moves.attrs, {q});
  if (moved == kAbsent) return false;
  settle(n, moved);
  return true;
}

}  // namespace sinter::convert
