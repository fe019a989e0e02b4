#include <algorithm>

#include "converter/quantize/quantization.h"
#include "converter/quantize/report/low_sqnr_outputs.h"

namespace sinter::convert {
namespace {

int64_t integer_layers(const IntegerGraph& graph) {
  return std::count_if(graph.layers.begin(), graph.layers.end(),
                       [](const LayerFate& l) { return l.integer; });
}

// Returns the plan as all samples would have made it: its choices stay, and ranges, roundings of weights and
// corrections of biases are estimated again.
QuantizationPlan plan_from(const Quantization& q, const Observations& seen) {
  QuantizationPlan plan = q.plan;
  for (const auto& [id, params] : fitted_ranges(q, seen)) plan.params[id] = params;
  if (!plan.wide.empty()) {
    const std::map<ValueId, QuantParams> fine = ranges(q, wide_rule(q), seen, q.estimators.roles);
    for (auto& [id, wide] : plan.wide)
      if (const auto at = fine.find(id); at != fine.end()) wide.params = at->second;
  }
  for (const auto& [id, scale] : planned_layers(q, recurrent_scales(q, plan.graph, seen)))
    plan.recurrent[id] = scale;
  if (q.estimators.weights) plan.weights = q.estimators.weights(Part::kAll);
  if (q.estimators.correct) plan.correct = q.estimators.correct(Part::kAll);
  return plan;
}

bool keeps_targets(Quantization& q, const Graph& refitted) {
  const QuantizeOptions& options = q.options;
  QuantizeSummary& summary = q.summary;
  if (options.max_drop) {
    const double accuracy = options.accuracy(refitted);
    if (accuracy < std::min(*summary.accuracy, *summary.float_accuracy - *options.max_drop)) return false;
    summary.accuracy = accuracy;
  }
  if (options.min_sqnr && options.evaluate) {
    Evaluation evaluation = options.evaluate(q.exact, refitted);
    if (worst_of(evaluation.outputs) < std::min(*options.min_sqnr, worst_of(summary.evaluation->outputs)))
      return false;
    summary.evaluation = std::move(evaluation);
  }
  return true;
}

}  // namespace

// Both plans have the same choices, which were judged. A refit may still meet an outlier among the judges, or
// numbers that fit no integer kernel.
std::optional<Proposal> propose_refit(Quantization& q) {
  if (!q.judges) return std::nullopt;
  q.trials->join(std::move(*q.judges));
  q.judges.reset();
  q.half_seen.reset();
  q.samples->include_judges();
  const int64_t all = q.samples->count();
  expect_refit(q, all >= 0 ? all : q.summary.samples * 5 / 4, q.trials->size(), true);
  const Observations seen = observe_samples(q, q.estimators.roles);
  q.begin(phase::kMeasuring);
  const auto plan = std::make_shared<QuantizationPlan>(plan_from(q, seen));
  const auto refitted = std::make_shared<IntegerGraph>(build(*plan));
  q.now_db = q.trials->measure(q.built.graph, q.few).worst_db();
  const double db = q.trials->measure(refitted->graph, q.few).worst_db();
  return Proposal{
      "", db, [&q, plan, refitted, samples = seen.samples] {
        if (integer_layers(*refitted) < integer_layers(q.built) || !keeps_targets(q, refitted->graph))
          return false;
        q.summary.refitted = samples;
        q.plan = std::move(*plan), q.built = std::move(*refitted);
        return true;
      }};
}

}  // namespace sinter::convert
