#include "converter/passes/integers/integer_form.h"

#include <algorithm>

#include "converter/ir/op_traits.h"
#include "converter/passes/integers/byte_tables.h"
#include "converter/passes/passes.h"

namespace sinter::convert {

IntegerForm::IntegerForm(Graph& graph, bool rounded_here)
    : e(graph),
      rounded_here_(rounded_here),
      quantizes_(std::any_of(graph.nodes.begin(), graph.nodes.end(),
                             [](const Node& node) { return node.as<QuantizeAttrs>() != nullptr; })) {}

const QuantizedValue* IntegerForm::known(ValueId id) const {
  const auto at = known_.find(id);
  return at == known_.end() ? nullptr : &at->second;
}

int IntegerForm::quantizer(int n) {
  const Node& node = e.node(n);
  if (!quantizes_ || node.outputs.size() != 1) return -1;
  const int k = e.reader(node.outputs[0]);
  if (k < 0 || e.node(k).as<QuantizeAttrs>() == nullptr || e.node(k).inputs[0] != node.outputs[0]) return -1;
  const auto params = quant_params(e.graph(), e.node(k));
  return params && (params->type == DType::kInt8 || params->type == DType::kInt16) ? k : -1;
}

int IntegerForm::int8_quantizer(int n) {
  const int k = quantizer(n);
  return k >= 0 && params_of(k).type == DType::kInt8 ? k : -1;
}

int IntegerForm::clamp_behind(int quantize) {
  const int k = e.reader(e.node(quantize).outputs[0]);
  return k >= 0 && e.node(k).as<ClampAttrs>() != nullptr ? k : -1;
}

void IntegerForm::note(ValueId q, const QuantParams& params) {
  Value& v = e.graph().value(q);
  // A named value keeps its scale: the same integers with another scale are another value.
  if (v.constant || (v.scale > 0 && !v.name.empty())) return;
  v.scale = params.scale, v.zero_point = params.zero_point;
}

void IntegerForm::settle(int quantize, ValueId q) {
  Value& made = e.graph().value(q);
  const Value& old = e.value(e.node(quantize).outputs[0]);
  if (made.name.empty()) made.name = old.name;
  made.order = old.order;
  const QuantParams params = params_of(quantize);
  note(q, params);
  note(e.node(quantize).outputs[0], params);
  e.bypass(quantize, q);
}

void IntegerForm::dequantize(int n, ValueId q, const QuantParams& p) {
  const ValueId scale = e.constant(Constant::scalar(DType::kFloat32, p.scale));
  const ValueId zero = e.constant(Constant::scalar_int(p.type, p.zero_point));
  e.replace(n, DequantizeAttrs{}, {q, scale, zero});
  note(q, p);
  Value& made = e.graph().value(q);
  const Value& number = e.value(e.node(n).outputs[0]);
  if (made.name.empty() && !number.name.empty()) {
    made.name = number.name + "." + dtype_name(p.type);
    made.order = number.order;
  }
  known_[e.node(n).outputs[0]] = {q, p};
}

void IntegerForm::visit(int n) {
  const Node& node = e.node(n);
  if (node.outputs.size() != 1 || node.outputs[0] < 0 || !node.bodies.empty()) return;
  if (node.as<DequantizeAttrs>() != nullptr) {
    const auto params = quant_params(e.graph(), node);
    if (params) note(node.inputs[0], *params);
    if (params && (params->type == DType::kInt8 || params->type == DType::kInt16))
      known_[node.outputs[0]] = {node.inputs[0], *params};
    return;
  }
  if (node.as<QuantizeAttrs>() != nullptr) {
    const QuantizedValue* x = known(node.inputs[0]);
    const auto params = quant_params(e.graph(), node);
    if (!params) return;
    note(node.outputs[0], *params);
    if (x == nullptr) {
      quantized_before(n);
      return;
    }
    if (const ValueId q = requantized(n, *x, *params); q != kAbsent) settle(n, q);
    return;
  }
  if (!e.value(node.outputs[0]).bounded_dims.empty()) return;
  // Tables first: they also replace sums and products of one value with itself.
  using Rule = bool (IntegerForm::*)(int);
  static constexpr Rule kRules[] = {
      &IntegerForm::sink,   &IntegerForm::resize,    &IntegerForm::product,    &IntegerForm::matrix_product,
      &IntegerForm::joined, &IntegerForm::pointwise, &IntegerForm::arithmetic, &IntegerForm::mean,
      &IntegerForm::prelu,  &IntegerForm::softmax};
  for (const Rule rule : kRules)
    if ((this->*rule)(n)) return;
}

int IntegerForm::run() {
  return e.sweep([this](int n) { visit(n); });
}

int IntegerForm::run_signs() {
  if (rounded_here_ && !quantizes_) return 0;  // bytes become floats as they are
  return e.sweep([this](int n) { make_signed(n); });
}

int integer_form(Graph& graph) {
  // All at once: each operation depends on the Quantize behind it.
  int changes = IntegerForm(graph).run_signs();
  changes += tables_of_bytes(graph);
  changes += until_stable(graph, [](Graph& g) { return IntegerForm(g).run(); });
  return changes + until_stable(graph, join_tables);
}

int rounded_integer_form(Graph& graph) {
  int changes = IntegerForm(graph, true).run_signs();
  changes += until_stable(graph, [](Graph& g) { return IntegerForm(g, true).run(); });
  changes += until_stable(graph, join_tables);
  for (Node& node : graph.nodes)
    for (const auto& body : node.bodies) changes += rounded_integer_form(*body);
  return changes;
}

}  // namespace sinter::convert
