#include "converter/quantize/search/quantization_plan.h"

#include <algorithm>
#include <set>

#include "converter/passes/integers/integer_form.h"
#include "converter/passes/pass.h"
#include "converter/quantize/integers/given_integers.h"
#include "converter/quantize/weights/product_weights.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {

std::map<ValueId, RoundedWeights> rounded_weights(const Graph& graph, const Graph& rounded) {
  std::map<ValueId, RoundedWeights> result;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto before = product_weights(graph, graph.nodes[n]),
               now = product_weights(rounded, rounded.nodes[n]);
    if (before && now && now->weights != before->weights)
      result[graph.nodes[n].outputs[0]] = {now->weights, now->bias};
  }
  return result;
}

namespace {

// Layers that read a value of 16 bits, or make one.
void tell_wide(const QuantizationPlan& plan, const std::vector<Role>& roles, std::vector<LayerFate>* layers) {
  if (plan.wide.empty()) return;
  std::vector<ValueId> values;
  for (const auto& [id, wide] : plan.wide) values.push_back(id);
  const std::map<ValueId, ValueId> held = with_moved(plan.graph, roles, values);
  const Uses uses(plan.graph);
  for (LayerFate& layer : *layers) {
    if (!layer.integer) continue;
    const int n = uses.producer[static_cast<size_t>(layer.output)];
    std::vector<ValueId> around = plan.graph.nodes[static_cast<size_t>(n)].inputs;
    around.push_back(layer.output);
    for (const ValueId id : around)
      if (const auto at = held.find(id); at != held.end() && layer.wide.empty())
        layer.wide = plan.wide.at(at->second).why;
  }
}

// Operations for which the integer pass had no row, or whose numbers did not fit it.
void tell_float(const Graph& graph, std::vector<LayerFate>* layers) {
  const auto number = [&](ValueId id) {
    return id >= 0 && !graph.is_constant(id) && graph.value(id).dtype == DType::kFloat32;
  };
  std::set<std::pair<ValueId, std::string>> floats;
  for (const Node& node : graph.nodes)
    if (std::any_of(node.inputs.begin(), node.inputs.end(), number))
      for (const ValueId id : node.outputs)
        if (number(id)) floats.insert({id, op_info(node.op())->name});
  for (LayerFate& layer : *layers)
    if (layer.integer && floats.contains({layer.output, layer.op})) {
      layer.integer = false, layer.wide.clear();
      layer.left = {Reason::kNoKernel, "its numbers do not fit an integer kernel"};
    }
}

}  // namespace

Graph with_rounded_weights(const QuantizationPlan& plan, const std::vector<Role>& roles) {
  Graph graph = plan.graph;
  for (size_t n = 0; n < roles.size(); ++n) {
    Node& node = graph.nodes[n];
    const auto at = node.outputs.empty() ? plan.weights.end() : plan.weights.find(node.outputs[0]);
    if (at == plan.weights.end() || roles[n] != Role::kInteger) continue;
    const auto put = [&](size_t operand, const ConstantPtr& constant) {
      if (!constant) return;
      if (node.inputs.size() <= operand) node.inputs.resize(operand + 1, kAbsent);
      const ValueId old = node.inputs[operand];
      node.inputs[operand] =
          graph.add_constant(constant, old < 0 ? std::string() : std::string(graph.value(old).name));
    };
    put(1, at->second.weights);
    put(2, at->second.bias);
  }
  return graph;
}

namespace {

// The plan's graph with everything rounded, before it is put on integers.
struct RoundedGraph {
  Graph graph;
  int rounded = 0;  // values
};
RoundedGraph rounded_graph(const QuantizationPlan& plan, const std::vector<Role>& roles) {
  RoundedGraph result{with_rounded_weights(plan, roles)};
  std::map<ValueId, QuantParams> params = plan.params;
  for (const auto& [id, wide] : plan.wide) params[id] = wide.params;
  for (const Node& node : plan.graph.nodes)
    if (const auto given = given_integers(plan.graph, node))
      if (const auto at = params.find(node.outputs[0]); at != params.end() && at->second.type == given->type)
        at->second = *given;
  result.rounded = place_quantizers(result.graph, roles, params);
  if (plan.correct) plan.correct(result.graph, plan.graph);
  return result;
}

// Recurrent layers that compute in float have weights that the file holds in 8 bits.
void narrow_recurrent(const QuantizationPlan& plan, Graph* graph) {
  WeightOnlyOptions recurrent{.recurrent_only = true};
  for (const auto& [id, why] : plan.left) recurrent.skipped.insert(id);
  narrow_weights(*graph, recurrent);
}

}  // namespace

Graph build_standard(const QuantizationPlan& plan, StandardForm* form) {
  Graph graph = rounded_graph(plan, assign_roles(plan.graph, plan.left)).graph;
  narrow_recurrent(plan, &graph);
  *form = give_standard_form(graph);
  run_pass(graph, "dead-code-last");
  return graph;
}

IntegerGraph build(const QuantizationPlan& plan) {
  IntegerGraph result;
  const std::vector<Role> roles = assign_roles(plan.graph, plan.left, &result.layers);
  RoundedGraph rounded = rounded_graph(plan, roles);
  result.graph = std::move(rounded.graph), result.rounded = rounded.rounded;
  tell_wide(plan, roles, &result.layers);
  RecurrentScales scales = plan.recurrent;
  std::erase_if(scales, [&](const auto& entry) { return plan.left.contains(entry.first); });
  integer_recurrent(result.graph, scales);
  for (LayerFate& layer : result.layers)
    if (scales.contains(layer.output)) layer.integer = true, layer.left = {};
  narrow_recurrent(plan, &result.graph);
  rounded_integer_form(result.graph);
  for (const char* pass : {"common-subexpressions-last", "dead-code-last"}) run_pass(result.graph, pass);
  tell_float(result.graph, &result.layers);
  for (const Node& node : result.graph.nodes) {
    if (node.outputs.size() != 1) continue;
    const DType t = result.graph.value(node.outputs[0]).dtype;
    result.integer_steps += byte_width(t) == 1 || t == DType::kInt16;
  }
  return result;
}

}  // namespace sinter::convert
