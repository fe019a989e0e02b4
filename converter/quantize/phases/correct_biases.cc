#include <algorithm>
#include <memory>

#include "converter/quantize/quantization.h"
#include "converter/quantize/weights/bias_correction.h"

namespace sinter::convert {
namespace {

constexpr double kCorrectionBudget = 1e9;  // for finding out means, in run_cost's unit
// Means of fewer samples are weak evidence: face landmarks lost 9 dB on others than the 11 seen.
constexpr size_t kFewestToRun = 16;

// A correction by runs, and whether the plan keeps its rounded weights beside it.
struct Correcting {
  std::function<Correction(Part)> by_runs;
  bool weights = false;
  QuantizationPlan of(const Quantization& q, Part part) const {
    QuantizationPlan plan = part == Part::kEven ? q.from_half(q.plan) : q.plan;
    if (!weights) plan.weights.clear();
    plan.correct = by_runs(part);
    return plan;
  }
};

// Makes the corrected plan the plan. A target that was reached stays reached.
bool take_correction(Quantization& q, const Correcting& correcting) {
  QuantizationPlan corrected = correcting.of(q, Part::kAll);
  if (q.options.min_sqnr && q.has_judges()) {
    const std::optional<Evaluation> evaluation = q.summary.evaluation;
    const double was = q.judged_db(build(q.plan).graph), now = q.judged_db(build(corrected).graph);
    if (now < *q.options.min_sqnr && now < was) {
      q.summary.evaluation = evaluation;
      return false;
    }
  }
  q.half.correct = correcting.by_runs(Part::kEven);
  q.estimators.correct = correcting.by_runs;
  q.plan = std::move(corrected);
  if (correcting.weights) return true;
  q.estimators.weights = nullptr;
  for (TechniqueGain& gain : q.summary.techniques)
    if (gain.name == technique::kAdaptiveRounding.name || gain.name == technique::kWeightSteps.name)
      gain.kept = false;
  return true;
}

}  // namespace

std::optional<Proposal> propose_correction_by_means(Quantization& q) {
  std::vector<ValueId> read;
  for (const Node& node : q.plan.graph.nodes)
    if (weight_axis(q.plan.graph, node) >= 0) read.push_back(node.inputs[0]);
  if (read.empty()) return std::nullopt;
  const auto by_means = [&q, read](Part part) -> Correction {
    const auto correction =
        std::make_shared<MeanCorrection>(q.trials->observe(q.plan.graph, read, true, part));
    return [correction](Graph& rounded, const Graph& exact) { (*correction)(rounded, exact); };
  };
  QuantizationPlan tried = q.from_half(q.plan);
  tried.correct = by_means(Part::kEven);
  return Proposal{"by the observed inputs", q.measured(tried, Part::kOdd),
                  [&q, by_means, half = tried.correct] {
                    q.half.correct = half, q.plan.correct = by_means(Part::kAll);
                    q.estimators.correct = by_means;
                    return true;
                  }};
}

bool can_correct_by_runs(const Quantization& q, size_t kept) {
  // The graph whose accuracy was measured stays unchanged.
  if (q.options.max_drop) return false;
  const Graph& graph = q.plan.graph;
  const auto products = static_cast<size_t>(
      std::ranges::count_if(graph.nodes, [&](const Node& node) { return weight_axis(graph, node) >= 0; }));
  const size_t samples = std::min(q.affordable(kTrialBudget, kept), kept);
  return products > 0 && samples >= kFewestToRun &&
         run_cost(graph) * static_cast<double>(products * samples) <= kCorrectionBudget;
}

// At last biases by running, and once more whether the rounding of weights is better with that.
std::optional<Proposal> propose_correction_by_runs(Quantization& q) {
  const size_t samples = std::min(q.few, q.trials->size());
  const auto by_runs = [&q, samples](Part part) -> Correction {
    return [&q, samples, list = q.trials->samples(part)](Graph& rounded, const Graph& exact) {
      correct_biases(rounded, exact, std::span(list).first(std::min(samples, list.size())), q.options.runner);
      q.work.did(Work::kCorrecting);
    };
  };
  Correcting best{by_runs, !q.plan.weights.empty()};
  double db = q.measured(best.of(q, Part::kEven), Part::kOdd);
  if (best.weights) {
    const Correcting bare{by_runs, false};
    if (const double other = q.measured(bare.of(q, Part::kEven), Part::kOdd); other > db + phase::kRuns.worth)
      db = other, best = bare;
  }
  return Proposal{"by running", db, [&q, best] { return take_correction(q, best); }};
}

}  // namespace sinter::convert
