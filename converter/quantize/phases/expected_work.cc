// The expected work of the phases of a quantization, for the time left.
#include <algorithm>

#include "converter/quantize/integers/value_scales.h"
#include "converter/quantize/quantization.h"
#include "converter/quantize/weights/adaptive_rounding.h"

namespace sinter::convert {
namespace {

// First estimates of a unit's time, beside the time of observing a sample: seconds for each byte of the float
// weights, and for each operation, measured on one core with AVX-512.
constexpr double kRoundByte = 10e-9, kStepByte = 3e-9, kTrialByte = 0.2e-9, kTrialOperation = 20e-6;
constexpr double kValueRange = 1.4e-3;                     // by one rule, of each value
constexpr double kRoundingCost = 0.05e-9;                  // for each unit of adaptive_rounding_cost()
constexpr int64_t kFewestSplit = 4;                        // samples that none judges
constexpr double kProbedSample = 0.7, kTriedSample = 0.4;  // of the time of observing one
constexpr double kOperationChoice = 0.2e-3;
constexpr double kPartOfGraph = 0.5;
// Units that are usual.
constexpr double kTrialsOfLeaving = 4, kTrialsOfOperation = 0.12, kManyOperations = 200;
constexpr double kUsualRewritings = 1, kUsualDistinctRules = 0.6, kUsualCandidates = 2,
                 kUsualCorrections = 2.5;

bool rounds_adaptively(const Quantization& q, size_t kept) {
  return std::ranges::any_of(q.turns(phase::kRounding, kept), [](const Turn& turn) {
    return turn.technique == &technique::kAdaptiveRounding;
  });
}

}  // namespace

void expect_phases(Quantization& q, int64_t observed, size_t kept) {
  const Graph& graph = q.plan.graph;
  const size_t few = q.affordable(kTrialBudget, kept);
  const auto all = static_cast<double>(kept), half = kept < kFewestHalved ? all : all / 2;
  double bytes = 0, products = 0;
  for (const Node& node : graph.nodes)
    if (weight_axis(graph, node) >= 0) {
      bytes += static_cast<double>(graph.value(node.inputs[1]).constant->byte_size());
      ++products;
    }
  const double trial = kTrialByte * bytes + kTrialOperation * static_cast<double>(graph.nodes.size());
  const double runs = kTriedSample * kTriedSamples, tried = trial_units(std::min(few, kept));
  const std::vector<Role> roles = assign_roles(graph, q.plan.left);
  q.work.guess(Work::kRanges, Work::kObserving, 0,
               kValueRange * static_cast<double>(values_to_round(graph, roles).size()));
  q.work.guess(Work::kProbing, Work::kObserving, kProbedSample, 0);
  q.work.guess(Work::kTrial, Work::kObserving, runs, trial);
  q.work.guess(Work::kRounding, Work::kTrial, 1, kRoundByte * bytes);
  const double adaptively = rounds_adaptively(q, kept) ? kRoundingCost * adaptive_rounding_cost(graph) : 0;
  q.work.guess(Work::kWeightSteps, Work::kObserving, 0, kStepByte * bytes + adaptively / 2);
  q.work.guess(Work::kChoosing, Work::kObserving, 0,
               kOperationChoice * static_cast<double>(graph.nodes.size()));
  // Each product's results are measured in a part of the graph.
  q.work.guess(Work::kCorrecting, Work::kTrial,
               trial_units(std::min(few, static_cast<size_t>(half))) * (1 + kPartOfGraph * products), 0);
  if (!q.turns(phase::kRewriting, kept).empty()) {
    q.work.expect(phase::kRewriting, Work::kObserving, (1 + kUsualRewritings) * half);
    q.work.expect(phase::kRewriting, Work::kRounding, 1 + kUsualRewritings);
  }
  const bool several = q.uses(technique::kMeasuredRanges) && q.options.calibrator.rule == Calibrator::kBest;
  const size_t rules = rules_to_try(q.asked_rule(), several).size();
  expect_rules(q, rules, roles, kept);
  q.work.expect(phase::kWeighingLayers, Work::kTrial, 1);
  const double roundings =
      static_cast<double>(q.turns(phase::kRounding, kept).size()) + (rounds_adaptively(q, kept) ? 0.5 : 0);
  q.work.expect(phase::kRounding, Work::kObserving, roundings > 0 ? half : 0);
  q.work.expect(phase::kRounding, Work::kWeightSteps, roundings);
  q.work.expect(phase::kRounding, Work::kTrial, tried * (1 + roundings));
  if (!q.turns(phase::kBiases, kept).empty()) {
    q.work.expect(phase::kBiases, Work::kObserving, half + all / 2);
    q.work.expect(phase::kBiases, Work::kTrial, tried);
  }
  const double operations = std::min(kManyOperations, static_cast<double>(graph.nodes.size()));
  q.work.expect(phase::kLeavingFloat, Work::kTrial,
                trial_units(std::min(q.affordable(kSmallTrialBudget, kept), kept)) *
                    (kTrialsOfLeaving + kTrialsOfOperation * operations));
  q.work.expect(phase::kLeavingFloat, Work::kChoosing, kTrialsOfOperation * operations);
  const double corrections = q.turns(phase::kRuns, kept).empty() ? 0 : kUsualCorrections;
  q.work.expect(phase::kRuns, Work::kCorrecting, corrections);
  q.work.expect(phase::kRuns, Work::kTrial, tried * corrections);
  q.work.expect(phase::kMeasuring, Work::kTrial, 1);
  expect_refit(q, observed * 5 / 4, kept, false);
}

void expect_rules(Quantization& q, size_t rules, const std::vector<Role>& roles, size_t kept) {
  const auto count = static_cast<double>(rules);
  const size_t half = kept < kFewestHalved ? kept : kept / 2;
  q.work.expect(phase::kWeighingRules, Work::kRanges, 2 * count);
  q.work.expect(
      phase::kWeighingRules, Work::kTrial,
      trial_units(std::min(q.affordable(kTrialBudget, kept), half)) * (kUsualDistinctRules * count + 1));
  const size_t values = scaled_values(q.plan.graph, roles).size(),
               attempts = kept < kManySamples
                              ? values
                              : static_cast<size_t>(kUsualCandidates * static_cast<double>(values));
  const ProbedSamples samples = samples_to_probe(q.plan.graph, attempts, values, half);
  q.work.expect(phase::kRanges, Work::kProbing,
                static_cast<double>(samples.each * (samples.of_all ? attempts : values)));
}

void expect_refit(Quantization& q, int64_t observed, size_t kept, bool known) {
  if (!q.uses(technique::kRefit) || observed <= kFewestSplit) return;
  const bool rounds = known ? q.estimators.weights != nullptr : rounds_adaptively(q, kept);
  const bool corrects = known ? q.estimators.correct != nullptr : !q.turns(phase::kBiases, kept).empty();
  const bool by_runs = corrects && !q.turns(phase::kRuns, kept).empty();
  q.work.expect(phase::kMeasuring, Work::kObserving,
                static_cast<double>(observed) + (corrects && !by_runs ? static_cast<double>(kept) : 0));
  q.work.expect(phase::kMeasuring, Work::kWeightSteps, rounds ? 1 : 0);
  q.work.expect(phase::kMeasuring, Work::kCorrecting, by_runs ? 1 : 0);
  q.work.expect(phase::kMeasuring, Work::kTrial,
                trial_units(std::min(q.affordable(kTrialBudget, kept), kept)) * (known ? 2 : 3));
}

}  // namespace sinter::convert
