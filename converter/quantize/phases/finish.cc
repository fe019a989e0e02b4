#include <algorithm>
#include <set>

#include "converter/ir/op_traits.h"
#include "converter/quantize/quantization.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/report/type_rows.h"
#include "converter/quantize/search/plan_for_shapes.h"

namespace sinter::convert {
namespace {

// Lists the noise of every value and of every layer's weights, and what was done about it.
void list_sources(Quantization& q) {
  const Graph& graph = q.plan.graph;
  const Uses uses(graph);
  const std::vector<Role> roles = assign_roles(graph, q.plan.left);
  const std::vector<ValueId> list = values_to_round(graph, roles);
  const std::set<ValueId> rounded(list.begin(), list.end());
  std::vector<ValueId> values;
  for (const auto& [id, value] : q.plan.wide) values.push_back(id);
  const std::map<ValueId, ValueId> wide = with_moved(graph, roles, values);
  std::vector<NoiseSource>& sources = q.summary.sources;
  for (const bool weights : {false, true})
    for (const auto& [id, noise] : weights ? q.sensitivity.weights : q.sensitivity.values) {
      const int n = uses.producer[static_cast<size_t>(id)];
      const Node* const node = n < 0 ? nullptr : &graph.nodes[static_cast<size_t>(n)];
      NoiseSource source{node == nullptr ? "" : node->name,
                         node == nullptr ? "input" : op_info(node->op())->name,
                         weights ? "" : graph.value(id).name, noise.worst_db(), weights};
      const bool integer = weights ? roles[static_cast<size_t>(n)] == Role::kInteger : rounded.contains(id);
      if (!integer) source.done = "float";
      if (integer && !weights && wide.contains(id)) source.done = "int16 activations";
      sources.push_back(std::move(source));
    }
  std::ranges::stable_sort(sources, {}, &NoiseSource::db);
}

// The built graph takes the place of `graph`, whose ledger gets its decisions.
void hand_over(Quantization& q, const Graph& exact, Graph&& built, Graph* graph) {
  const std::shared_ptr<TypeLedger> ledger = graph->ledger;
  *graph = std::move(built);
  for (const TypeDecision& decision : graph->ledger->all()) ledger->add(decision);
  graph->ledger = ledger;
  file_quantized(exact, *graph, std::max(q.summary.samples, q.summary.refitted));
}

}  // namespace

void finish(Quantization& q) {
  QuantizeSummary& summary = q.summary;
  const QuantizeOptions& options = q.options;
  q.plan.graph.ledger = std::make_shared<TypeLedger>();  // what trials filed is void
  q.built = build(q.plan);
  summary.measured = static_cast<int64_t>(q.judging().size());
  summary.variation = q.trials->variation();
  summary.held_out = q.judges.has_value();
  summary.outputs = judged_outputs(q.exact, q.built.graph, q.judging());
  if (options.min_sqnr && q.has_judges())
    summary.reached =
        worst_of(options.evaluate ? summary.evaluation->outputs : summary.outputs) >= *options.min_sqnr;
  list_sources(q);
  advise(q, q.built.graph);
  q.propose(phase::kMeasuring);
  if (options.accuracy && !summary.accuracy) {
    summary.float_accuracy = options.accuracy(q.exact);
    summary.accuracy = options.accuracy(q.built.graph);
  }
  if (options.evaluate && !summary.evaluation) summary.evaluation = options.evaluate(q.exact, q.built.graph);
  summary.rounded = q.built.rounded;
  summary.integer_steps = q.built.integer_steps;
  summary.settings = stated_settings(q);
  summary.layers = std::move(q.built.layers);
  hand_over(q, q.exact, std::move(q.built.graph), &q.graph);
  file_left_float(q.plan.graph, summary.layers, q.graph.ledger.get());
  if (options.standard_form) take_standard_form(q);
  if (q.others.empty()) return;
  const CorrectedBiases corrected = corrected_biases(q.plan);
  for (Graph* other : q.others) {
    const Graph exact = *other;
    hand_over(q, exact, build(plan_for_shapes(q.plan, q.exact, exact, corrected)).graph, other);
  }
}

}  // namespace sinter::convert
