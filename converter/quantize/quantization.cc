#include "converter/quantize/quantization.h"

#include <algorithm>
#include <chrono>

#include "converter/quantize/report/low_sqnr_outputs.h"
#include "converter/quantize/search/cheaper_in_float.h"

namespace sinter::convert {
namespace {

constexpr size_t kFewestInTrial = 8;

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

constexpr Turn kTurns[] = {
#define SINTER_TECHNIQUE(constant, name, description)
#define SINTER_TURN(constant, its_phase, ...) {&technique::constant, &phase::its_phase, __VA_ARGS__},
#include "converter/quantize/techniques.def"
};

}  // namespace

Quantization::Quantization(Graph& result, SampleSource* all, const QuantizeOptions& how,
                           std::span<Graph* const> further)
    : graph(result),
      others(further),
      exact(result),
      source(all),
      options(how),
      work(how.clock ? how.clock : system_seconds, [this](Work kind) {
        if (total_ < 0 && (kind == Work::kTrial || kind == Work::kRounding)) ++done_;
        report();
      }) {
  if (source != nullptr) samples.emplace(*source, Trials::most_samples(result));
  plan.graph = result;
  plan.graph.ledger = std::make_shared<TypeLedger>();  // trials decide nothing
  plan.left.force_int8 = options.force_int8;
  plan.left.require_int8 = options.require_int8;
  plan.left.cpu = options.cpu;
  plan.left.integer_ports = options.integer_ports;
  summary.byte_flags = options.byte_flags;
}

QuantizeSummary Quantization::run() {
  if (options.weights) {
    quantize_weights_alone(*this);
    return std::move(summary);
  }
  summary.cpu = options.cpu;
  keep_named_in_float(*this);
  if (!options.force_int8)
    for (auto& [id, why] : slower_on_integers(plan.graph, plan.left)) plan.left.emplace(id, std::move(why));
  apply_layers(*this);
  const auto observe_plan = [this] { return observe_samples(*this, assign_roles(plan.graph, plan.left)); };
  Observations seen = observe_plan();
  summary.samples = seen.samples;
  begin(phase::kRewriting);
  spare_recurrent(*this, seen);
  if (rewrite_graph(*this)) {
    seen = observe_plan();
    plan.recurrent = planned_layers(*this, recurrent_scales(*this, plan.graph, seen));
  }
  begin(phase::kWeighingRules);
  find_given_values(*this);
  choose_ranges(*this, seen);
  give_wide_values(*this);
  begin(phase::kRounding);
  now_db = measured(from_half(plan), Part::kOdd);
  propose(phase::kRounding);
  half_seen.reset();
  expect_refit(*this, summary.samples * 5 / 4, trials->size(), true);
  begin(phase::kBiases);
  propose(phase::kBiases);
  expect_refit(*this, summary.samples * 5 / 4, trials->size(), true);
  begin(phase::kLeavingFloat);
  keep_accuracy(*this);
  begin(phase::kRuns);
  propose(phase::kRuns);
  begin(phase::kMeasuring);
  finish(*this);
  return std::move(summary);
}

bool Quantization::uses(const Technique& technique) const {
  if (std::ranges::count(options.disabled, technique.name) > 0) return false;
  if (!options.settings) return true;
  if (const auto& listed = options.settings->techniques)
    return std::ranges::find(*listed, technique.name) != listed->end();
  // Ranges that are given are those of channels that nothing rescales.
  const auto has_range = [](const auto& entry) { return entry.second.range.has_value(); };
  return std::ranges::none_of(options.settings->values, has_range) ||
         std::ranges::none_of(kTurns, [&](const Turn& turn) {
           return turn.technique == &technique && turn.phase == &phase::kRewriting;
         });
}

std::vector<Turn> Quantization::turns(const Phase& phase, size_t kept) const {
  std::vector<Turn> list;
  for (const Turn& turn : kTurns)
    if (turn.phase == &phase && uses(*turn.technique) && (turn.needs == nullptr || turn.needs(*this, kept)))
      list.push_back(turn);
  return list;
}

void Quantization::propose(const Phase& phase) {
  for (const Turn& turn : turns(phase, trials->size())) {
    const std::optional<Proposal> proposal = turn.propose(*this);
    if (!proposal) continue;
    const bool kept = proposal->db > now_db + phase.worth && proposal->take();
    summary.techniques.push_back({turn.technique->name, proposal->what, now_db, proposal->db, kept});
    if (kept) now_db = proposal->db;
  }
}

double Quantization::measured(const QuantizationPlan& tried, Part part) const {
  return trials->measure(build(tried).graph, few, part).worst_db();
}

QuantizationPlan Quantization::from_half(const QuantizationPlan& whole) const {
  QuantizationPlan made = whole;
  for (const auto& [id, params] : half.params) made.params[id] = params;
  if (!whole.weights.empty()) made.weights = half.weights;
  if (whole.correct) made.correct = half.correct;
  return made;
}

Noise Quantization::foresee(const QuantizationPlan& tried, size_t most) const {
  return trials->measure(build(from_half(tried)).graph, most, Part::kOdd);
}

Observations Quantization::observe_half(const Graph& observed) const {
  return trials->observe(observed, observable_values(observed), true, Part::kEven);
}

const std::shared_ptr<const Observations>& Quantization::half_observations() {
  if (!half_seen) half_seen = std::make_shared<const Observations>(observe_half(plan.graph));
  return half_seen;
}

double Quantization::judged_db(const Graph& rounded) {
  if (!options.evaluate) return judging().measure(rounded).worst_db();
  summary.evaluation = options.evaluate(exact, rounded);
  return worst_of(summary.evaluation->outputs);
}

size_t Quantization::affordable(double budget, size_t kept) const {
  const auto count = static_cast<size_t>(budget / std::max(1.0, run_cost(exact)));
  return std::clamp(count, kFewestInTrial, kept + kFewestInTrial);
}

RangeRule Quantization::asked_rule() const {
  RangeRule rule{options.calibrator, options.activations, 0, cut()};
  if (rule.calibrator.rule == Calibrator::kBest && few_samples()) rule.calibrator.rule = Calibrator::kMinMax;
  return rule;
}

void Quantization::begin(const Phase& phase) {
  work.begin(phase);
  phase_ = &phase, done_ = 0, total_ = -1;
  report();
}

Step Quantization::step(const Phase& phase) {
  return [this, &phase](int64_t done, int64_t total) {
    work.begin(phase);
    phase_ = &phase, done_ = done, total_ = total;
    if (&phase == &phase::kCalibrating) return work.did(Work::kObserving);  // reports
    if (&phase == &phase::kWeighingLayers)
      work.expect(phase, Work::kTrial, static_cast<double>(total - done));
    report();
  };
}

void Quantization::report() const {
  if (options.progress) options.progress(*phase_, done_, total_, work.left());
}

}  // namespace sinter::convert
