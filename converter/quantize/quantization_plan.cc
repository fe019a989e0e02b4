#include "converter/quantize/quantization_plan.h"

#include "converter/passes/pass.h"
#include "converter/quantize/product_weights.h"
#include "converter/quantize/weight_only.h"

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

IntegerGraph build(const QuantizationPlan& plan) {
  IntegerGraph result;
  result.graph = plan.graph;
  const std::vector<Role> roles = assign_roles(result.graph, plan.left, &result.layers);
  for (size_t n = 0; n < roles.size(); ++n) {
    Node& node = result.graph.nodes[n];
    const auto at = node.outputs.empty() ? plan.weights.end() : plan.weights.find(node.outputs[0]);
    if (at == plan.weights.end() || roles[n] != Role::kInteger) continue;
    const auto put = [&](size_t operand, const ConstantPtr& constant) {
      if (!constant) return;
      if (node.inputs.size() <= operand) node.inputs.resize(operand + 1, kAbsent);
      const ValueId old = node.inputs[operand];
      node.inputs[operand] = result.graph.add_constant(
          constant, old < 0 ? std::string() : std::string(result.graph.value(old).name));
    };
    put(1, at->second.weights);
    put(2, at->second.bias);
  }
  result.rounded = place_quantizers(result.graph, roles, plan.params);
  if (plan.correct) plan.correct(result.graph, plan.graph);
  // Recurrent layers compute in float, with weights that the file holds in 8 bits.
  WeightOnlyOptions recurrent;
  recurrent.recurrent_only = true;
  for (const auto& [id, why] : plan.left) recurrent.skipped.insert(id);
  narrow_weights(result.graph, recurrent);
  for (const char* pass : {"integer", "common-subexpressions-last", "dead-code-last"})
    run_pass(result.graph, pass);
  for (const Node& node : result.graph.nodes) {
    if (node.outputs.size() != 1) continue;
    const DType t = result.graph.value(node.outputs[0]).dtype;
    result.integer_steps += byte_width(t) == 1 || t == DType::kInt16;
  }
  return result;
}

}  // namespace sinter::convert
