#include "converter/quantize/quantization_plan.h"

#include "converter/passes/pass.h"
#include "converter/quantize/weight_only.h"

namespace sinter::convert {

IntegerGraph build(const QuantizationPlan& plan) {
  IntegerGraph result;
  result.graph = plan.graph;
  const std::vector<Role> roles = assign_roles(result.graph, plan.left, &result.layers);
  result.rounded = place_quantizers(result.graph, roles, plan.params);
  if (plan.correct) plan.correct(result.graph, plan.graph);
  // Recurrent layers compute in float, with weights that the file holds in 8 bits.
  WeightOnlyOptions recurrent;
  recurrent.recurrent_only = true;
  narrow_weights(result.graph, recurrent);
  for (const char* pass : {"integer", "common-subexpressions-last", "dead-code-last"})
    run_pass(result.graph, pass);
  for (const Node& node : result.graph.nodes)
    result.integer_steps +=
        node.outputs.size() == 1 && byte_width(result.graph.value(node.outputs[0]).dtype) == 1;
  return result;
}

}  // namespace sinter::convert
