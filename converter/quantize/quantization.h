// A static quantization on its way through its phases: the plan so far, and what each phase hands on to the
// later ones. quantize.h is what others call.
//
// A technique proposes. The judge (propose) takes a proposal if the SQNR of the worst output gains more than
// Phase::worth, on kept samples that the proposal was not made from. Ranges, rewritings of all samples and
// operations kept in float are decided by their phases (phases/).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "converter/quantize/quantize.h"
#include "converter/quantize/ranges/range_rules.h"
#include "converter/quantize/samples/sample_split.h"
#include "converter/quantize/search/leave_float.h"
#include "converter/quantize/search/sensitivity.h"
#include "converter/quantize/work_left.h"

namespace sinter::convert {

// Budgets of one measurement, in run_cost's unit: where dozens of plans are measured, and where hundreds are.
inline constexpr double kTrialBudget = 0.4e9, kSmallTrialBudget = 0.1e9;
// The usual number of trials for each target of what is kept in float.
inline constexpr double kUsualTrialsOfTarget = 2;
// Kept samples that extremes and a choice among many rules can be based on.
inline constexpr size_t kManySamples = 32;

struct Quantization;

// A change of the plan.
struct Proposal {
  std::string what;  // for the report
  double db = 0;     // SQNR of the worst output with it, on kept samples that it was not made from
  // Makes it the plan, from all kept samples. Returns false, and leaves the plan, if a target would be
  // missed.
  std::function<bool()> take;
};
// Returns the change that a technique proposes; nullopt: it would change nothing.
using Propose = std::optional<Proposal>(Quantization& q);

// A turn of a technique in a phase.
struct Turn {
  const Technique* technique;
  const Phase* phase;
  Propose* propose;
  // Returns whether the model, the options and this many kept samples allow the turn; null: they always do.
  bool (*needs)(const Quantization& q, size_t kept) = nullptr;
};
#define SINTER_TECHNIQUE(constant, name, description)
#define SINTER_TURN(constant, phase, propose, ...) Propose propose;
#include "converter/quantize/techniques.def"

// Changes a float graph, but not what it computes; returns the number of groups of channels that it rescaled.
using Rewriting = int(Graph& graph, const Observations& seen);
// A float graph, and its values as one half of the kept samples shows them.
struct RewrittenGraph {
  Graph graph;
  std::shared_ptr<const Observations> seen;
};

struct Quantization {
  Quantization(Graph& result, SampleSource* all, const QuantizeOptions& how, std::span<Graph* const> further);
  QuantizeSummary run();

  // ---- what is given
  Graph& graph;                          // becomes the result
  const std::span<Graph* const> others;  // the same model in other shapes
  const Graph exact;
  SampleSource* const source;              // null: there are none, for weights alone
  std::optional<ChoosingSamples> samples;  // of `source`
  const QuantizeOptions& options;

  // ---- what calibrating finds
  std::optional<Trials> trials;  // kept samples that choose
  std::optional<Trials> judges;  // kept samples that do not; absent: there are too few samples
  size_t few = 4;                // samples that one measurement of many may take
  size_t fewer = 8;              // samples that one measurement of very many may take

  // ---- the plan, which each phase changes
  QuantizationPlan plan;
  // Parts of the plan as one half of the kept samples gives them.
  struct {
    std::map<ValueId, QuantParams> params;
    std::map<ValueId, RoundedWeights> weights;
    Correction correct;
  } half;
  double now_db = 0;                              // what is to be expected of the plan
  std::shared_ptr<const Observations> half_seen;  // half_observations(); null: not observed yet

  // ---- what rewriting hands on
  RewrittenGraph rewritten;  // by one half of the kept samples
  std::vector<Rewriting*> tried_rewritings, possible_rewritings, taken_rewritings;

  // ---- what choosing ranges hands on
  std::map<ValueId, ValueSetting> given;  // by --quantize-config
  std::map<ValueId, QuantParams> fine;    // for values that may get 16 bits instead of 8
  Sensitivity sensitivity;
  // How the plan was estimated from samples, for refitting.
  struct {
    std::vector<Role> roles;       // that ranges were chosen for
    std::vector<RangeRule> rules;  // by number
    size_t rule = 0;               // of all values but these:
    std::map<ValueId, size_t> rule_of;
    std::function<std::map<ValueId, RoundedWeights>(Part)> weights;  // empty: rounded to nearest
    std::function<Correction(Part)> correct;                         // empty: nothing is corrected
  } estimators;

  // ---- what is reported
  IntegerGraph built;  // of the plan, once it is finished
  QuantizeSummary summary;
  WorkLeft work;

  // ---- techniques
  bool uses(const Technique& technique) const;
  // Returns the turns in `phase` of techniques that are used and whose needs are met.
  std::vector<Turn> turns(const Phase& phase, size_t kept) const;
  // The judge: lets the techniques of a phase propose one after another, and takes what gains enough.
  void propose(const Phase& phase);

  // ---- measuring
  // Returns the SQNR of the worst output with a plan, on few kept samples of a part.
  double measured(const QuantizationPlan& tried, Part part = Part::kAll) const;
  // Returns the noise that is to be expected of a plan: that of from_half(tried), on the other half.
  Noise foresee(const QuantizationPlan& tried, size_t most) const;
  // Returns the plan as one half of the kept samples would have made it, to be measured on the other half.
  QuantizationPlan from_half(const QuantizationPlan& whole) const;
  Observations observe_half(const Graph& observed) const;
  // Returns the values of the plan's graph as one half of the kept samples shows them.
  const std::shared_ptr<const Observations>& half_observations();
  // Whether min_sqnr is decided by samples that nothing else is chosen by: those of
  // QuantizeOptions::evaluate, or those that were held out.
  bool has_judges() const { return options.evaluate || judges; }
  const Trials& judging() const { return judges ? *judges : *trials; }
  // Returns the worst output's SQNR on the samples that decide about min_sqnr.
  double judged_db(const Graph& rounded);
  // Few kept samples are weak evidence of how far values reach: nothing is clipped then, unless that gains
  // much.
  bool few_samples() const { return trials && trials->size() < kManySamples; }
  // Returns the number of samples that one trial may take.
  size_t affordable(double budget, size_t kept) const;
  Cut cut() const { return uses(technique::kFunctionRanges) ? Cut::kFlat : Cut::kNone; }
  RangeRule asked_rule() const;

  // ---- progress
  void begin(const Phase& phase);
  // Returns what counts the units of a phase.
  Step step(const Phase& phase);

 private:
  void report() const;

  const Phase* phase_ = &phase::kCalibrating;
  int64_t done_ = 0, total_ = -1;
};

// ---- phases/calibrate.cc
void keep_named_in_float(Quantization& q);
// Observes what these roles round, in all samples that choose; the first time some of them are kept for
// trials.
Observations observe_samples(Quantization& q, const std::vector<Role>& roles);

// ---- phases/apply_settings.cc: what QuantizeOptions::settings gives
// Keeps layers in float, or on integers that are slower. Throws UsageError for a name that is not there.
void apply_layers(Quantization& q);
// Finds the values of the plan's graph that have a setting. Throws UsageError for a name that is not there.
void find_given_values(Quantization& q);
// Gives 16 bits to the values that have that setting. Throws UsageError where a layer has no kernel for it.
void give_wide_values(Quantization& q);
// Returns the finished plan as settings.
QuantizeSettings stated_settings(const Quantization& q);

// ---- phases/recurrent_layers.cc
// Recurrent layers that lose too much on integers compute in float, with weights of 8 bits; those that lose
// too much with these keep all in float.
void spare_recurrent(Quantization& q, const Observations& seen);
// Returns the scales of the graph's recurrent layers that have an integer form, which no standard form has.
RecurrentScales recurrent_scales(const Quantization& q, const Graph& graph, const Observations& seen);
// Returns the scales of those layers that the plan computes on integers.
RecurrentScales planned_layers(const Quantization& q, RecurrentScales scales);

// ---- phases/rewrite.cc
// Returns whether the float graph was changed.
bool rewrite_graph(Quantization& q);
// Returns a rewriting of what those before have made of the graph.
std::optional<Proposal> propose_rewriting(Quantization& q, Rewriting* rewriting);

// ---- phases/choose_ranges.cc
void choose_ranges(Quantization& q, const Observations& seen);
RangeRule wide_rule(const Quantization& q);
// Returns the ranges that a rule gives every rounded value.
std::map<ValueId, QuantParams> ranges(const Quantization& q, const RangeRule& rule, const Observations& seen,
                                      const std::vector<Role>& roles);
// Returns the ranges that the chosen rules give from other observations.
std::map<ValueId, QuantParams> fitted_ranges(const Quantization& q, const Observations& seen);

// ---- phases/round_weights.cc, phases/correct_biases.cc
bool can_round_adaptively(const Quantization& q, size_t kept);
bool can_correct_by_runs(const Quantization& q, size_t kept);

// ---- phases/keep_accuracy.cc
// Keeps operations in float, or gives values 16 bits, until the outputs are as exact as required.
void keep_accuracy(Quantization& q);

// ---- phases/finish.cc
// Builds and measures the plan, refits it, and reports it.
void finish(Quantization& q);

// ---- phases/standard.cc
// Replaces the finished result, integer operations or weights of few bits, by the form of the ONNX standard.
void take_standard_form(Quantization& q);

// Returns the noise of the outputs on all samples of `trials`, with intervals.
std::vector<OutputNoise> judged_outputs(const Graph& exact, const Graph& rounded, const Trials& trials);

// ---- phases/weights_alone.cc
// All that QuantizeOptions::weights asks for, without the other phases.
void quantize_weights_alone(Quantization& q);

// ---- report/quantize_advice.cc
// Lists the outputs with a low SQNR, why they have it, and what other settings give.
void advise(Quantization& q, const Graph& rounded);

// ---- phases/expected_work.cc: for the time left
// Expects the work of all phases. `observed`: samples that choose; `kept`: of these, for trials.
void expect_phases(Quantization& q, int64_t observed, size_t kept);
void expect_rules(Quantization& q, size_t rules, const std::vector<Role>& roles, size_t kept);
// `observed`: with the judges. `known`: what is done again is known by now.
void expect_refit(Quantization& q, int64_t observed, size_t kept, bool known);

}  // namespace sinter::convert
