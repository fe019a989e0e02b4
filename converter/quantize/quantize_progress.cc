// What the phases of a quantization are expected to do, for the time left.
#include <algorithm>

#include "converter/quantize/integers/value_scales.h"
#include "converter/quantize/quantizer.h"
#include "converter/quantize/weights/adaptive_rounding.h"

namespace sinter::convert {
namespace {

// What a unit takes at first, beside the time of observing a sample: seconds for each byte of the float
// weights, and for each operation; measured on one core with AVX-512.
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

}  // namespace

void Quantizer::begin(const Phase& phase) {
  work_.begin(phase);
  phase_ = &phase, done_ = 0, total_ = -1;
  report();
}

Step Quantizer::step(const Phase& phase) {
  return [this, &phase](int64_t done, int64_t total) {
    work_.begin(phase);
    phase_ = &phase, done_ = done, total_ = total;
    if (&phase == &phase::kCalibrating) return work_.did(Work::kObserving);  // reports
    if (&phase == &phase::kWeighingLayers)
      work_.expect(phase, Work::kTrial, static_cast<double>(total - done));
    report();
  };
}

void Quantizer::report() const {
  if (options_.progress) options_.progress(*phase_, done_, total_, work_.left());
}

void Quantizer::expect_phases(int64_t observed, size_t kept) {
  const Graph& graph = plan_.graph;
  const size_t few = affordable(kTrialBudget, kept);
  const auto all = static_cast<double>(kept), half = kept < kFewestHalved ? all : all / 2;
  double bytes = 0, products = 0;
  for (const Node& node : graph.nodes)
    if (weight_axis(graph, node) >= 0) {
      bytes += static_cast<double>(graph.value(node.inputs[1]).constant->byte_size());
      ++products;
    }
  const double trial = kTrialByte * bytes + kTrialOperation * static_cast<double>(graph.nodes.size());
  const double runs = kTriedSample * kTriedSamples, tried = trial_units(std::min(few, kept));
  const std::vector<Role> roles = assign_roles(graph, plan_.left);
  work_.guess(Work::kRanges, Work::kObserving, 0,
              kValueRange * static_cast<double>(values_to_round(graph, roles).size()));
  work_.guess(Work::kProbing, Work::kObserving, kProbedSample, 0);
  work_.guess(Work::kTrial, Work::kObserving, runs, trial);
  work_.guess(Work::kRounding, Work::kTrial, 1, kRoundByte * bytes);
  const double adaptively = rounds_adaptively(kept) ? kRoundingCost * adaptive_rounding_cost(graph, {}) : 0;
  work_.guess(Work::kWeightSteps, Work::kObserving, 0, kStepByte * bytes + adaptively / 2);
  work_.guess(Work::kChoosing, Work::kObserving, 0,
              kOperationChoice * static_cast<double>(graph.nodes.size()));
  // Each product's results are measured in a part of the graph.
  work_.guess(Work::kCorrecting, Work::kTrial,
              trial_units(std::min(few, static_cast<size_t>(half))) * (1 + kPartOfGraph * products), 0);
  if (!turns(phase::kRewriting, kept).empty()) {
    work_.expect(phase::kRewriting, Work::kObserving, (1 + kUsualRewritings) * half);
    work_.expect(phase::kRewriting, Work::kRounding, 1 + kUsualRewritings);
  }
  const bool several = may_mix_ranges_ && options_.calibrator.rule == Calibrator::kBest;
  const size_t rules = rules_to_try(asked_rule(), several).size();
  expect_rules(rules, roles, kept);
  work_.expect(phase::kWeighingLayers, Work::kTrial, 1);
  const double roundings =
      static_cast<double>(turns(phase::kRounding, kept).size()) + (rounds_adaptively(kept) ? 0.5 : 0);
  work_.expect(phase::kRounding, Work::kObserving, roundings > 0 ? half : 0);
  work_.expect(phase::kRounding, Work::kWeightSteps, roundings);
  work_.expect(phase::kRounding, Work::kTrial, roundings > 0 ? tried * (1 + roundings) : 0);
  work_.expect(phase::kBiases, Work::kTrial, tried);
  if (!turns(phase::kBiases, kept).empty()) {
    work_.expect(phase::kBiases, Work::kObserving, half + all / 2);
    work_.expect(phase::kBiases, Work::kTrial, 2 * tried);
  }
  const double operations = std::min(kManyOperations, static_cast<double>(graph.nodes.size()));
  work_.expect(phase::kLeavingFloat, Work::kTrial,
               trial_units(std::min(affordable(kSmallTrialBudget, kept), kept)) *
                   (kTrialsOfLeaving + kTrialsOfOperation * operations));
  work_.expect(phase::kLeavingFloat, Work::kChoosing, kTrialsOfOperation * operations);
  const double corrections = turns(phase::kRuns, kept).empty() ? 0 : kUsualCorrections;
  work_.expect(phase::kRuns, Work::kCorrecting, corrections);
  work_.expect(phase::kRuns, Work::kTrial, tried * corrections);
  work_.expect(phase::kMeasuring, Work::kTrial, 1);
  expect_refit(observed * 5 / 4, kept, false);
}

bool Quantizer::rounds_adaptively(size_t kept) const {
  return std::ranges::any_of(turns(phase::kRounding, kept), [](const Turn& turn) {
    return turn.technique == &technique::kAdaptiveRounding;
  });
}

// Of ranges and what probes them.
void Quantizer::expect_rules(size_t rules, const std::vector<Role>& roles, size_t kept) {
  const auto count = static_cast<double>(rules);
  const size_t half = kept < kFewestHalved ? kept : kept / 2;
  work_.expect(phase::kWeighingRules, Work::kRanges, 2 * count);
  work_.expect(
      phase::kWeighingRules, Work::kTrial,
      trial_units(std::min(affordable(kTrialBudget, kept), half)) * (kUsualDistinctRules * count + 1));
  const size_t values = scaled_values(plan_.graph, roles).size(),
               attempts = kept < kManySamples
                              ? values
                              : static_cast<size_t>(kUsualCandidates * static_cast<double>(values));
  const ProbedSamples samples = samples_to_probe(plan_.graph, attempts, values, half);
  work_.expect(phase::kRanges, Work::kProbing,
               static_cast<double>(samples.each * (samples.of_all ? attempts : values)));
}

// `known`: what is done again is known by now.
void Quantizer::expect_refit(int64_t observed, size_t kept, bool known) {
  if (!may_refit_ || observed <= kFewestSplit) return;
  const bool rounds = known ? estimators_.weights != nullptr : rounds_adaptively(kept);
  const bool corrects = known ? estimators_.correct != nullptr : !turns(phase::kBiases, kept).empty();
  const bool by_runs = corrects && !turns(phase::kRuns, kept).empty();
  work_.expect(phase::kMeasuring, Work::kObserving,
               static_cast<double>(observed) + (corrects && !by_runs ? static_cast<double>(kept) : 0));
  work_.expect(phase::kMeasuring, Work::kWeightSteps, rounds ? 1 : 0);
  work_.expect(phase::kMeasuring, Work::kCorrecting, by_runs ? 1 : 0);
  work_.expect(phase::kMeasuring, Work::kTrial,
               trial_units(std::min(affordable(kTrialBudget, kept), kept)) * (known ? 2 : 3));
}

}  // namespace sinter::convert
