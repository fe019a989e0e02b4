#include "converter/quantize/integers/integer_recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "converter/cost/node_cost.h"
#include "converter/ir/builder.h"
#include "converter/ir/op_traits.h"
#include "converter/quantize/weights/weight_only.h"
#include "runtime/kernels/q_recurrent.h"

namespace sinter::convert {
namespace {

constexpr double kGateUnit = 0x1p-12, kActivationUnit = 0x1p-15, kHiddenUnit = 0x1p-13;
constexpr double kMostRowSum = 0x1p31 - 1;

// The attributes that Lstm and Gru have in common.
struct LayerForm {
  bool lstm;
  int64_t hidden, direction, layout;
  const IntList* activations;
  const FloatList *alpha, *beta;
  double clip;
  size_t gates, each;  // rows for each hidden unit, activations of a direction
  size_t directions() const {
    return direction == static_cast<int64_t>(RnnDirection::kBidirectional) ? 2 : 1;
  }
};
std::optional<LayerForm> form_of(const Node& node) {
  if (const auto* a = node.as<LstmAttrs>())
    return LayerForm{true,      a->hidden_size, a->direction, a->layout, &a->activations,
                     &a->alpha, &a->beta,       a->clip,      4,         3};
  if (const auto* a = node.as<GruAttrs>())
    return LayerForm{false,     a->hidden_size, a->direction, a->layout, &a->activations,
                     &a->alpha, &a->beta,       a->clip,      3,         2};
  return std::nullopt;
}

// The activations of all directions. Nothing: one has results beyond -1 to 1, or takes parameters.
std::optional<std::vector<RnnActivation>> activations_of(const LayerForm& f) {
  std::vector<RnnActivation> list;
  for (size_t i = 0; i < f.each * f.directions(); ++i) {
    const auto code = f.activations->empty()
                          ? (i % f.each == 0 ? RnnActivation::kSigmoid : RnnActivation::kTanh)
                          : static_cast<RnnActivation>((*f.activations)[static_cast<int>(i)]);
    if (code != RnnActivation::kSigmoid && code != RnnActivation::kTanh && code != RnnActivation::kSoftsign)
      return std::nullopt;
    list.push_back(code);
  }
  return list;
}

// One activation as the device interpolates it: its numbers at -8, -8 + 2^-5, ..., 8. Gates are clipped
// first, but not what a cell becomes.
void add_table(RnnActivation activation, double clip, std::vector<int16_t>* tables) {
  const recurrent::Activation fn{activation, 0, 0};
  for (int64_t i = 0; i <= recurrent::kTableIntervals; ++i) {
    const double x = std::clamp(16.0 * static_cast<double>(i) / recurrent::kTableIntervals - 8, -clip, clip);
    tables->push_back(static_cast<int16_t>(
        std::clamp(std::nearbyint(recurrent::apply(fn, x) / kActivationUnit), -32768.0, 32767.0)));
  }
}

struct WeightRows {
  std::vector<int8_t> q;
  std::vector<double> steps;  // of each row
  std::vector<double> magnitudes;
};
// WeightRows of `columns` numbers as whole numbers of steps, at most 127.
WeightRows weight_rows(const std::vector<double>& items, size_t columns) {
  WeightRows rows;
  for (size_t at = 0; at < items.size(); at += columns) {
    double most = 0, sum = 0;
    for (size_t i = at; i < at + columns; ++i) most = std::max(most, std::fabs(items[i]));
    const double step = most > 0 ? most / 127 : 1;
    for (size_t i = at; i < at + columns; ++i) {
      rows.q.push_back(static_cast<int8_t>(std::nearbyint(items[i] / step)));
      sum += std::abs(rows.q.back());
    }
    rows.steps.push_back(step);
    rows.magnitudes.push_back(sum);
  }
  return rows;
}

std::vector<float> multipliers(const WeightRows& rows, double unit) {
  std::vector<float> result;
  for (const double step : rows.steps) result.push_back(static_cast<float>(step * unit / kGateUnit));
  return result;
}

bool sums_fit(const WeightRows& rows, double reach) {
  return std::all_of(rows.magnitudes.begin(), rows.magnitudes.end(),
                     [&](double m) { return m * reach <= kMostRowSum; });
}

ValueId operand_of(const Node& node, size_t i) { return i < node.inputs.size() ? node.inputs[i] : kAbsent; }

// The weights of operand `i` as rows.
WeightRows weights_of(const Graph& g, const Node& node, size_t i) {
  const ConstantPtr c = g.value(node.inputs[i]).constant;
  return weight_rows(c->as_doubles(), static_cast<size_t>(c->dims()[2]));
}

double reach_of(const QuantParams& x) {
  const QuantRange range = quant_range(x.type);
  return static_cast<double>(std::max(range.max - x.zero_point, x.zero_point - range.min));
}

// The addends of the products of W's rows, then of R's.
std::vector<float> biases(const Graph& g, const Node& node, size_t count) {
  std::vector<float> result(count, 0.0f);
  if (const ValueId b = operand_of(node, 3); b >= 0) {
    const std::vector<double> items = g.value(b).constant->as_doubles();
    for (size_t i = 0; i < count; ++i) result[i] = static_cast<float>(items[i] / kGateUnit);
  }
  return result;
}

// The integers that a value was dequantized from, if it was.
std::optional<std::pair<ValueId, QuantParams>> integers_of(const Graph& g, const Uses& uses, ValueId id) {
  const int n = uses.producer[static_cast<size_t>(id)];
  if (n < 0 || g.nodes[static_cast<size_t>(n)].as<DequantizeAttrs>() == nullptr) return std::nullopt;
  const Node& node = g.nodes[static_cast<size_t>(n)];
  const auto params = quant_params(g, node);
  if (!params || (params->type != DType::kInt8 && params->type != DType::kInt16) ||
      (params->type == DType::kInt16 && params->zero_point != 0))
    return std::nullopt;
  return std::pair{node.inputs[0], *params};
}

OpAttrs integer_layer_attrs(const Node& node, const LayerForm& f, const QuantParams& x) {
  const auto with = [&](auto q) {
    q.hidden_size = f.hidden, q.direction = f.direction, q.layout = f.layout, q.x_zero = x.zero_point;
    q.to = static_cast<int64_t>(DType::kFloat32), q.multiplier = kHiddenUnit;
    return q;
  };
  if (f.lstm) return with(QLstmAttrs{});
  QGruAttrs gru{};
  gru.linear_before_reset = node.as<GruAttrs>()->linear_before_reset;
  return with(gru);
}

// The node's operands, x and weights as integers; empty: sums may leave their type.
std::vector<ValueId> integer_operands(Graph& g, const Node& node, const LayerForm& f, ValueId x,
                                      const QuantParams& p) {
  const WeightRows w = weights_of(g, node, 1), r = weights_of(g, node, 2);
  if (!sums_fit(w, reach_of(p)) || !sums_fit(r, 1 / kHiddenUnit)) return {};
  const auto directions = static_cast<int64_t>(f.directions()),
             rows = static_cast<int64_t>(f.gates) * f.hidden;
  std::vector<int16_t> tables;
  const std::vector<RnnActivation> activations = *activations_of(f);
  for (size_t i = 0; i < activations.size(); ++i)
    add_table(activations[i], f.clip > 0 && i % f.each < 2 ? f.clip : kInfinity, &tables);
  int64_t sets = directions;
  if (const size_t half = tables.size() / 2;
      sets == 2 && std::equal(tables.begin(), tables.begin() + static_cast<ptrdiff_t>(half),
                              tables.begin() + static_cast<ptrdiff_t>(half)))
    tables.resize(half), sets = 1;
  const auto add = [&](ConstantPtr c, ValueId like, const char* what) {
    const std::string name(like >= 0 ? g.value(like).name : "");
    return g.add_constant(std::move(c), name.empty() ? name : name + what);
  };
  const Dims &w_dims = g.value(node.inputs[1]).dims, &r_dims = g.value(node.inputs[2]).dims;
  const Dims by_row{directions, rows};
  std::vector<ValueId> inputs = {
      x,
      add(Constant::of<int8_t>(DType::kInt8, w_dims, w.q), node.inputs[1], ""),
      add(Constant::of<int8_t>(DType::kInt8, r_dims, r.q), node.inputs[2], ""),
      add(Constant::of<float>(DType::kFloat32, by_row, multipliers(w, p.scale)), node.inputs[1],
          ".multipliers"),
      add(Constant::of<float>(DType::kFloat32, by_row, multipliers(r, kHiddenUnit)), node.inputs[2],
          ".multipliers"),
      add(Constant::of<float>(DType::kFloat32, {directions, 2 * rows},
                              biases(g, node, static_cast<size_t>(directions * 2 * rows))),
          operand_of(node, 3), ".gates"),
      g.add_constant(Constant::of<int16_t>(
          DType::kInt16, {sets, static_cast<int64_t>(f.each), recurrent::kTableIntervals + 1}, tables)),
      operand_of(node, 4),
      operand_of(node, 5)};
  if (f.lstm) inputs.push_back(operand_of(node, 6));
  while (inputs.back() == kAbsent) inputs.pop_back();
  return inputs;
}

}  // namespace

ValueId recurrent_result(const Node& node) {
  if (!is_recurrent(node.op())) return kAbsent;
  const auto at = std::find_if(node.outputs.begin(), node.outputs.end(), [](ValueId id) { return id >= 0; });
  return at == node.outputs.end() ? kAbsent : *at;
}

std::string no_integer_form(const Graph& g, const Node& node) {
  const auto f = form_of(node);
  if (!f) return "the integer kernels are for LSTM and GRU";
  if (g.value(node.inputs[0]).dtype != DType::kFloat32 || g.is_constant(node.inputs[0]))
    return "its input is not a float32 value";
  for (const size_t i : {size_t{1}, size_t{2}, size_t{3}})
    if (const ValueId id = operand_of(node, i); id >= 0 && !g.is_constant(id))
      return "its weights are not constant";
  if (operand_of(node, 7) >= 0) return "it has peepholes";
  if (const auto* a = node.as<LstmAttrs>(); a != nullptr && a->input_forget != 0)
    return "its input and forget gates are coupled";
  if (!activations_of(*f)) return "an activation is not Sigmoid, Tanh or Softsign";
  for (const size_t i : {size_t{1}, size_t{2}})
    for (const double v : g.value(node.inputs[i]).constant->as_doubles())
      if (!std::isfinite(v)) return "a weight is not finite";
  if (!sums_fit(weights_of(g, node, 1), 255) || !sums_fit(weights_of(g, node, 2), 1 / kHiddenUnit))
    return "sums of its products may not fit 32 bits";
  return "";
}

bool gains_on_integers(Cpu cpu, const Graph& g, const Node& node) {
  const double cast = boundary_cost(cpu, element_count(g.value(node.inputs[0]).dims));
  return int8_cost(cpu, g, node) + cast < float_cost(cpu, g, node);
}

QuantParams recurrent_scale(const Graph& g, const Node& node, double low, double high) {
  // Samples that nothing has seen may reach further, and 16 bits have a step to spare.
  constexpr double kRoom = 2;
  const double most = std::max({std::fabs(low), std::fabs(high), 1e-30});
  if (sums_fit(weights_of(g, node, 1), 32768))
    return {DType::kInt16, static_cast<float>(kRoom * most / 32767), 0};
  return {DType::kInt8, static_cast<float>(most / 127), 0};
}

void integer_recurrent(Graph& g, const RecurrentScales& scales) {
  if (scales.empty()) return;
  const Uses uses(g);
  std::vector<Node> old = std::move(g.nodes), nodes;
  g.nodes = old;  // as `uses` lists them
  Builder builder(g);
  builder.set_target(&nodes);
  for (Node& node : old) {
    const auto input = scales.find(recurrent_result(node));
    if (input == scales.end() || !no_integer_form(g, node).empty()) {
      nodes.push_back(std::move(node));
      continue;
    }
    const LayerForm form = *form_of(node);
    auto x = integers_of(g, uses, node.inputs[0]);
    std::vector<ValueId> inputs;
    if (x) inputs = integer_operands(g, node, form, x->first, x->second);
    if (inputs.empty()) {
      x.reset();
      builder.set_origin({node.name, node.origin});
      QuantizeAttrs quantize{};
      quantize.to = static_cast<int64_t>(input->second.type);
      std::vector<ValueId> q;
      if (!builder
               .emit(quantize,
                     {node.inputs[0], g.add_constant(Constant::scalar(DType::kFloat32, input->second.scale)),
                      g.add_constant(Constant::scalar_int(input->second.type, input->second.zero_point))},
                     1, &q)
               .ok())
        throw std::logic_error("the input of a recurrent layer cannot be quantized");
      inputs = integer_operands(g, node, form, q[0], input->second);
    }
    node.attrs = integer_layer_attrs(node, form, x ? x->second : input->second);
    node.inputs = std::move(inputs);
    nodes.push_back(std::move(node));
  }
  g.nodes = std::move(nodes);
}

}  // namespace sinter::convert
