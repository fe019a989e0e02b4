#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "converter/quantize/quantizer.h"
#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/weights/adaptive_rounding.h"
#include "converter/quantize/weights/bias_correction.h"
#include "converter/quantize/weights/weight_only.h"

namespace sinter::convert {
namespace {

// SQNR that a recurrent layer's weights must leave, and its margin above the target, in dB.
constexpr double kLeastRecurrent = 35, kRecurrentMargin = 6;
constexpr double kCorrectionBudget = 1e9;  // for finding out means, in run_cost's unit
// Multiplications that adaptive rounding may take unless it was requested: some seconds.
constexpr double kRoundingBudget = 2e10;
// Means of fewer samples are weak evidence: face landmarks lost 9 dB on others than the 11 seen.
constexpr size_t kFewestToRun = 16;

}  // namespace

RecurrentScales Quantizer::recurrent_scales(const Graph& graph, const Observations& seen) const {
  RecurrentScales scales;
  for (const Node& node : graph.nodes) {
    const ValueId result = recurrent_result(node);
    if (result == kAbsent || plan_.left.contains(result) || !no_integer_form(graph, node).empty()) continue;
    if (!plan_.left.asks_for_integers() && !gains_on_integers(plan_.left.cpu, graph, node)) continue;
    const TensorSummary* x = seen.find(node.inputs[0]);
    if (x != nullptr && x->elements > 0 && x->not_finite == 0)
      scales[result] = recurrent_scale(graph, node, x->all.min, x->all.max);
  }
  return scales;
}

RecurrentScales Quantizer::same_layers(RecurrentScales scales) const {
  std::erase_if(scales, [&](const auto& entry) { return !plan_.recurrent.contains(entry.first); });
  return scales;
}

void Quantizer::spare_recurrent(const Observations& seen) {
  const double least = std::max(kLeastRecurrent, options_.min_sqnr.value_or(0) + kRecurrentMargin);
  std::set<ValueId> all;
  for (const Node& node : plan_.graph.nodes)
    if (const ValueId result = recurrent_result(node); result != kAbsent && !plan_.left.contains(result))
      all.insert(result);
  const auto measured = [&](const RecurrentScales& scales, const std::set<ValueId>& skipped) {
    Graph graph = plan_.graph;
    integer_recurrent(graph, scales);
    WeightOnlyOptions recurrent;
    recurrent.recurrent_only = true;
    recurrent.skipped = skipped;
    narrow_weights(graph, recurrent);
    return trials_->measure(graph, few_).worst_db();
  };
  plan_.recurrent = recurrent_scales(plan_.graph, seen);
  if (all.empty() || measured(plan_.recurrent, {}) >= least) return;
  std::erase_if(plan_.recurrent, [&](const auto& scale) { return measured({scale}, all) < least; });
  for (const ValueId id : all) {
    if (plan_.recurrent.contains(id)) continue;
    std::set<ValueId> skipped = all;
    skipped.erase(id);
    if (const double db = measured({}, skipped); db < least)
      plan_.left[id] = {Reason::kAccuracy, fmt::format("its weights in 8 bits alone give {:.1f} dB", db)};
  }
}

void Quantizer::round_weights() {
  std::optional<double> before;
  for (const Turn& turn : turns(phase::kRounding, trials_->size())) {
    const auto chosen = [this, rounding = turn.rounding](Part part) {
      Graph graph = plan_.graph;
      (this->*rounding)(graph, part);
      work_.did(Work::kWeightSteps);
      return rounded_weights(plan_.graph, graph);
    };
    const std::map<ValueId, RoundedWeights> half = chosen(Part::kEven);
    if (half.empty()) continue;
    if (!before) before = foresee(plan_, few_).worst_db();
    QuantizationPlan tried = from_half(plan_);
    tried.weights = half;
    const double after = measured(tried, Part::kOdd);
    if (!accept(*turn.technique, fmt::format("{} products", half.size()), *before, after, kWorthCorrecting))
      continue;
    half_weights_ = half, plan_.weights = chosen(Part::kAll), before = after;
    estimators_.weights = chosen;
  }
}

void Quantizer::correct_by_means() {
  std::vector<ValueId> read;
  for (const Node& node : plan_.graph.nodes)
    if (weight_axis(plan_.graph, node) >= 0) read.push_back(node.inputs[0]);
  if (read.empty()) return;
  const auto by_means = [this, read](Part part) -> Correction {
    const auto correction = std::make_shared<MeanCorrection>(trials_->observe(plan_.graph, read, true, part));
    return [correction](Graph& rounded, const Graph& exact) { (*correction)(rounded, exact); };
  };
  QuantizationPlan plan = plan_;
  plan.correct = half_correct_ = by_means(Part::kEven);
  const Noise noise = foresee(plan, few_);
  if (accept(technique::kBiasCorrection, "by the observed inputs", now_.worst_db(), noise.worst_db(),
             kWorthCorrecting))
    plan_.correct = by_means(Part::kAll), estimators_.correct = by_means, now_ = noise;
}

void Quantizer::clip_weights(Graph& graph, Part part) {
  choose_weight_steps(
      graph, part == Part::kEven ? *half() : trials_->observe(graph, observable_values(graph), true, part));
}

void Quantizer::round_weights_adaptively(Graph& graph, Part part) {
  half_.reset();  // there is much else to hold now
  AdaptiveRoundingOptions rounding;
  rounding.runner = options_.runner;
  round_adaptively(graph, trials_->samples(part), rounding);
}

bool Quantizer::can_round_adaptively(size_t) const {
  return options_.adaptive_rounding || adaptive_rounding_cost(plan_.graph, {}) < kRoundingBudget;
}

bool Quantizer::can_correct_by_runs(size_t kept) const {
  // The graph whose accuracy was measured stays unchanged.
  if (options_.max_drop) return false;
  size_t products = 0;
  for (const Node& node : plan_.graph.nodes) products += weight_axis(plan_.graph, node) >= 0;
  const size_t samples = std::min(affordable(kTrialBudget, kept), kept);
  return products > 0 && samples >= kFewestToRun &&
         run_cost(plan_.graph) * static_cast<double>(products * samples) <= kCorrectionBudget;
}

void Quantizer::correct_by_runs() {
  const size_t samples = std::min(few_, trials_->size());
  const auto by_runs = [this, samples](Part part) -> Correction {
    return [this, samples, list = trials_->samples(part)](Graph& rounded, const Graph& exact) {
      correct_biases(rounded, exact, std::span(list).first(std::min(samples, list.size())), options_.runner);
      work_.did(Work::kCorrecting);
    };
  };
  const auto way = [&](Part part, bool weights, bool runs) {
    QuantizationPlan plan = part == Part::kEven ? from_half(plan_) : plan_;
    if (!weights) plan.weights.clear();
    if (runs) plan.correct = by_runs(part);
    return plan;
  };
  const bool rounded = !plan_.weights.empty();
  const double before = measured(way(Part::kEven, rounded, false), Part::kOdd);
  double after = measured(way(Part::kEven, rounded, true), Part::kOdd);
  bool weights = rounded;
  if (const double bare = rounded ? measured(way(Part::kEven, false, true), Part::kOdd) : after;
      bare > after + kWorthCorrecting)
    after = bare, weights = false;
  bool kept = after > before + kWorthCorrecting;
  if (kept) {
    QuantizationPlan corrected = way(Part::kAll, weights, true);
    // A target that was reached stays reached.
    if (options_.min_sqnr && has_judges()) {
      const std::optional<Evaluation> evaluation = summary_.evaluation;
      const double was = judge(build(plan_).graph), now = judge(build(corrected).graph);
      kept = now >= *options_.min_sqnr || now >= was;
      if (!kept) summary_.evaluation = evaluation;
    }
    if (kept) {
      half_correct_ = way(Part::kEven, weights, true).correct;
      estimators_.correct = by_runs;
      if (!weights) estimators_.weights = nullptr;
      plan_ = std::move(corrected);
      now_ = foresee(plan_, few_);
    }
  }
  summary_.techniques.push_back({technique::kBiasCorrection.name, "by running", before, after, kept});
  if (!kept) return;
  for (TechniqueGain& gain : summary_.techniques)
    if (!weights &&
        (gain.name == technique::kAdaptiveRounding.name || gain.name == technique::kWeightSteps.name))
      gain.kept = false;
}

}  // namespace sinter::convert
