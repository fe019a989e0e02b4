#include "converter/quantize/quantize.h"

#include "converter/passes/pass.h"
#include "converter/quantize/weight_only.h"

namespace sinter::convert {
namespace {

constexpr int64_t kInt8Lowest = -128;

QuantParams params_of(const TensorSummary& seen, const CalibratorOptions& calibrator) {
  const Grid grid = grid_of(choose_range(seen, calibrator, kInt8Levels).range, kInt8Levels);
  return {DType::kInt8, static_cast<double>(static_cast<float>(grid.scale)), grid.zero + kInt8Lowest};
}

}  // namespace

QuantizeSummary quantize_graph(Graph& graph, SampleSource& samples, const QuantizeOptions& options) {
  const Graph exact = graph;
  QuantizeSummary summary;
  const std::vector<Role> roles = assign_roles(graph, &summary.layers);
  ObserveOptions observing;
  observing.runner = options.runner;
  observing.channels = false;
  if (options.progress)
    observing.progress = [&](int64_t done, int64_t total) { options.progress("calibrating", done, total); };
  const Observations seen = observe(graph, samples, values_to_round(graph, roles), observing);
  summary.samples = seen.samples;
  std::map<ValueId, QuantParams> params;
  for (const auto& [id, tensor] : seen.values)
    if (tensor.elements > 0 && tensor.not_finite == 0) params[id] = params_of(tensor, options.calibrator);
  summary.rounded = place_quantizers(graph, roles, params);
  // Recurrent layers compute in float, with weights that the file holds in 8 bits.
  WeightOnlyOptions recurrent;
  recurrent.recurrent_only = true;
  narrow_weights(graph, recurrent);
  for (const char* pass : {"integer", "common-subexpressions-last", "dead-code-last"}) run_pass(graph, pass);
  for (const Node& node : graph.nodes)
    summary.integer_steps +=
        node.outputs.size() == 1 && graph.value(node.outputs[0]).dtype == DType::kInt8 ? 1 : 0;
  summary.outputs = measure_noise(exact, graph, samples, options, &summary.tried);
  return summary;
}

}  // namespace sinter::convert
