// Why an output has a low SQNR, and what settings would raise it.
#include <fmt/format.h>

#include <algorithm>

#include "converter/quantize/quantization.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/samples/sample_list.h"
#include "converter/quantize/search/leave_float.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {
namespace {

constexpr double kEnough = 24;  // dB to suggest where the SQNR is low

// Measures another setting's graph on the samples that judge.
void try_out(Quantization& q, std::string flags, std::string what, const Graph& graph) {
  const QuantizeOptions& options = q.options;
  std::vector<OutputNoise> outputs = options.weights ? judged_outputs(q.exact, graph, q.judging())
                                                     : noise_by_output(q.exact, q.judging().measure(graph));
  const double before = worst_of(q.summary.outputs), after = worst_of(outputs);
  Suggestion& remedy = q.summary.remedies.emplace_back(
      Suggestion{std::move(flags), std::move(what), before, after, std::move(outputs), {}, {}});
  if (options.weights) return;
  if (options.max_drop && options.accuracy) remedy.accuracy = options.accuracy(graph);
  if (options.evaluate && options.min_sqnr)
    remedy.evaluated_db = worst_of(options.evaluate(q.exact, graph).outputs);
}

// `least`: weights that must become narrow.
void try_weights(Quantization& q, std::string flags, std::string what, const WeightOnlyOptions& how,
                 int least) {
  Graph tried = q.exact;
  tried.ledger = std::make_shared<TypeLedger>();
  if (narrow_weights(tried, how).narrowed >= least) try_out(q, std::move(flags), std::move(what), tried);
}

void try_other_weights(Quantization& q, const WeightOnlyOptions& how) {
  WeightOnlyOptions wide = how, blocks = how, eight = how;
  wide.round_activations = false, blocks.block = 16, eight.bits = 8;
  if (how.round_activations) try_weights(q, "without --activations int8", "activations in float", wide, 0);
  if (how.bits != 0 && how.block > 16)
    try_weights(q, fmt::format("--quantize {} --block 16", weight_only_name(how.bits)), "more scales", blocks,
                0);
  if (how.bits != 0 && how.bits < 8) try_weights(q, "--quantize int8w", "weights of 8 bits", eight, 0);
}

// Keeps more in float, or gives more values 16 bits.
void try_leaving(Quantization& q) {
  QuantizationPlan plan = q.plan;
  const bool wanted = plan.left.asks_for_integers();
  const MeasurePlan measure = [&](const QuantizationPlan& tried) { return q.foresee(tried, q.fewer); };
  const auto reach = [&](Remedy remedy) {
    return leave_float(&plan, *q.trials, measure, q.sensitivity, q.fine, remedy, {.db = kEnough}).reached;
  };
  const bool wide = wanted && !q.fine.empty();
  if (!(wide && reach(Remedy::kWide)) && !reach(wanted ? Remedy::kFloat : Remedy::kCheaper)) return;
  std::string what;
  const auto say = [&](size_t count, const char* one, const char* many) {
    if (count > 0) what += fmt::format("{}{} {}", what.empty() ? "" : ", ", count, count == 1 ? one : many);
  };
  say(plan.left.size() - q.plan.left.size(), "more operation in float", "more operations in float");
  say(plan.wide.size() - q.plan.wide.size(), "value of 16 bits", "values of 16 bits");
  try_out(q, fmt::format("--min-sqnr {:.0f}{}", kEnough, q.options.max_drop ? " instead of --max-drop" : ""),
          what, build(plan).graph);
}

void measure_remedies(Quantization& q) {
  const QuantizeOptions& options = q.options;
  if (options.weights) {
    try_other_weights(q, *options.weights);
  } else {
    const std::string without = without_flags(options.byte_flags);
    if (options.activations == DType::kInt8) {
      QuantizationPlan plan = q.plan;
      for (auto& [id, params] : plan.params) params = finer(params);
      try_out(q, "--quantize int8x16" + without, "activations of 16 bits", build(plan).graph);
    }
    try_weights(q, "--quantize int8w" + without, "activations in float", {}, 1);
  }
  // Settings that reach what is wanted come first, in this order; then those that gain most.
  const double wanted = q.summary.wanted_db;
  std::ranges::stable_sort(q.summary.remedies, [&](const Suggestion& a, const Suggestion& b) {
    const bool reaches_a = a.after_db >= wanted, reaches_b = b.after_db >= wanted;
    return reaches_a != reaches_b ? reaches_a : !reaches_a && a.after_db > b.after_db;
  });
}

// Returns the output with the rounding that adds most of its noise.
LowOutput explain(const Quantization& q, size_t output, const std::vector<LayerReport>& layers) {
  const Graph& graph = q.plan.graph;
  const std::vector<Role> roles = assign_roles(graph, q.plan.left);
  const Uses uses(graph);
  LowOutput low{q.summary.outputs[output].name, q.summary.outputs[output].db, {"", "", "", 999, false}, ""};
  const auto weigh = [&](ValueId id, const std::map<ValueId, Noise>& noises, bool weights) {
    const auto at = noises.find(id);
    if (at == noises.end() || output >= at->second.outputs.size()) return;
    const double db = to_db(at->second.outputs[output]);
    if (db >= low.loudest.db) return;
    const int n = uses.producer[static_cast<size_t>(id)];
    const Node* node = n < 0 ? nullptr : &graph.nodes[static_cast<size_t>(n)];
    low.loudest = {node == nullptr ? "" : node->name, node == nullptr ? "input" : op_info(node->op())->name,
                   weights ? "" : exact_name(graph.value(id).name), db, weights};
  };
  // Values that now have 16 bits add negligible noise.
  for (const ValueId id : scaled_values(graph, roles))
    if (!q.plan.wide.contains(id)) weigh(id, q.sensitivity.values, false);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (roles[n] == Role::kInteger) weigh(graph.nodes[n].outputs[0], q.sensitivity.weights, true);
  low.cause =
      low.loudest.db < 999 ? cause_of(low.loudest, layers, graph)
      : std::none_of(roles.begin(), roles.end(), [](Role r) { return r == Role::kInteger; })
          ? "no operation computes on integers: this is the loss of float32 itself and of weights in 8 bits"
          : "no single rounding";
  return low;
}

}  // namespace

void advise(Quantization& q, const Graph& rounded) {
  QuantizeSummary& summary = q.summary;
  const QuantizeOptions& options = q.options;
  const bool missed = !summary.reached;
  summary.wanted_db = options.min_sqnr && missed ? *options.min_sqnr : kLittleSignal;
  const bool low = worst_of(summary.outputs) < summary.wanted_db;
  // A loss on data other than the kept samples cannot be attributed to an output here.
  if (missed && (options.max_drop || (options.evaluate && !low))) return measure_remedies(q);
  if (!low) return;
  const std::vector<Sample> judges = q.judging().samples(Part::kAll);
  SampleList list(judges);
  SampleSource& samples = options.weights ? *q.source : list;
  const std::vector<LayerReport> layers =
      report_layers(q.exact, rounded, samples, {.runner = options.runner, .most_samples = kMostLookedAt});
  if (options.weights)
    summary.low = low_by_layers(summary.outputs, rounded, layers, summary.layers);
  else
    for (size_t i = 0; i < summary.outputs.size(); ++i)
      if (summary.outputs[i].db < summary.wanted_db) summary.low.push_back(explain(q, i, layers));
  if (!options.weights && !options.min_sqnr && (options.max_drop || !q.uses(technique::kLeaveFloat)))
    try_leaving(q);
  measure_remedies(q);
}

}  // namespace sinter::convert
