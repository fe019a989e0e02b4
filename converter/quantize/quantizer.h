// The stages of a static quantization, and their common state. quantize.h is what others call.
//
// A stage proposes; whether its proposal is taken is decided by the noise in the outputs, most often on
// samples that the proposal was not made from.
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

// For measuring once, in run_cost's unit: where dozens of plans are measured, and where hundreds are.
inline constexpr double kTrialBudget = 0.4e9, kSmallTrialBudget = 0.1e9;
// The usual number of trials for each target of what is kept in float.
inline constexpr double kUsualTrialsOfTarget = 2;
// Kept samples that extremes and a choice among many rules can be based on.
inline constexpr size_t kManySamples = 32;
// Rewriting and correcting must win this much, in dB.
inline constexpr double kWorthRewriting = 0.5, kWorthCorrecting = 0.2;

class Quantizer;

// A turn of a technique in a phase: one of three functions, or a permission.
struct Turn {
  const Technique* technique;
  const Phase* phase;
  // Changes a float graph, but not what it computes; returns the number of groups of channels.
  int (*rewriting)(Graph&, const Observations&) = nullptr;
  // Chooses how the weights of the plan's graph are rounded, by this part of the samples.
  void (Quantizer::*rounding)(Graph&, Part) = nullptr;
  // Measures a changed plan, which becomes the plan if it is accepted.
  void (Quantizer::*proposal)() = nullptr;
  // The member that permits the phase to do more.
  bool Quantizer::*permission = nullptr;
  // Whether the model, the options and this many kept samples allow it; null: always.
  bool (Quantizer::*needs)(size_t kept) const = nullptr;
};

class Quantizer {
 public:
  Quantizer(Graph& graph, SampleSource& samples, const QuantizeOptions& options,
            std::span<Graph* const> others);
  QuantizeSummary run();

 private:
  // ---- quantize_turns.cc
  static std::span<const Turn> all_turns();
  // The turns in `phase` of techniques that are used and whose needs are met.
  std::vector<Turn> turns(const Phase& phase, size_t kept) const;
  void propose(const Phase& phase);
  // The judge: whether a proposal gains more than `worth`, in dB on samples that it was not made from.
  bool accept(const Technique& technique, std::string what, double before, double after, double worth);

  // ---- quantize.cc
  void keep_what_the_user_wants();
  // A pass over the samples that choose, of what these roles round; the first one also keeps some of them for
  // trials.
  Observations observe_all(const std::vector<Role>& roles);
  void finish();
  void build_others();
  void list_sources();

  // ---- quantize_rewriting.cc: techniques that change the float graph, but not what it computes
  // Whether the float graph changed. One after the other is tried on the graph so far; then all of them, as
  // one alone may show nothing while another's noise is larger.
  bool rewrite();
  // A value with other channels is not what the model calls by its name.
  void rename_scaled();

  // ---- quantize_ranges.cc
  void choose(const Observations& seen);
  void choose_ranges(const Observations& seen, const std::vector<Role>& roles);
  RangeRule wide_rule() const;
  // The ranges of a rule for every rounded value.
  std::map<ValueId, QuantParams> ranges(const RangeRule& rule, const Observations& seen,
                                        const std::vector<Role>& roles) const;
  // The ranges of the chosen rules from other observations.
  std::map<ValueId, QuantParams> fitted_ranges(const Observations& seen) const;
  // A moved value has the range of its source, in case it is rounded by itself.
  void share_noise(const std::vector<ValueId>& values);

  // ---- quantize_weights.cc: how weights are rounded, and biases that make up for it
  // Recurrent layers that lose too much on integers compute in float, with weights of 8 bits; those that lose
  // too much with these keep all in float.
  void spare_recurrent(const Observations& seen);
  // Of recurrent layers that have an integer form.
  RecurrentScales recurrent_scales(const Graph& graph, const Observations& seen) const;
  // Those of the plan's, as other observations have them.
  RecurrentScales same_layers(RecurrentScales scales) const;
  // Weights are chosen on one half of the samples, measured on the other, and then chosen on all of them.
  void round_weights();
  void clip_weights(Graph& graph, Part part);
  void round_weights_adaptively(Graph& graph, Part part);
  bool can_round_adaptively(size_t kept) const;
  void correct_by_means();
  // At last biases by running, and once more whether adaptive rounding is better with that: what is chosen on
  // one half of the samples is measured on the other.
  void correct_by_runs();
  bool can_correct_by_runs(size_t kept) const;

  // ---- quantize_leaving.cc: what is kept in float, or gets 16 bits
  void leave();
  void leave_by(Remedy remedy);
  void leave_by_accuracy(const std::function<bool(const LeaveTarget&)>& reach);
  void leave_by_judges(const std::function<bool(const LeaveTarget&)>& reach);

  // ---- quantize_refit.cc: what was estimated from the samples that choose, estimated from all of them
  // Once the plan is judged: its choices stay, and ranges, roundings of weights and corrections of biases
  // come from the judges, too. Taken unless it is worse on all kept samples or misses a target that was
  // reached.
  void refit(IntegerGraph* built);
  bool keeps_targets(const Graph& refitted);

  // ---- quantize_advice.cc: outputs with a low SQNR
  void advise(const Graph& rounded);
  // `leaving`: also by leaving more in float.
  void measure_remedies(bool leaving);

  // ---- quantize_progress.cc
  void begin(const Phase& phase);
  // What counts the units of a phase.
  Step step(const Phase& phase);
  void report() const;
  // Of all phases. `observed`: samples that choose; `kept`: of these, for trials.
  void expect_phases(int64_t observed, size_t kept);
  void expect_rules(size_t rules, const std::vector<Role>& roles, size_t kept);
  // `observed`: with the judges.
  void expect_refit(int64_t observed, size_t kept, bool known);
  bool rounds_adaptively(size_t kept) const;
  // Samples that one trial may take.
  size_t affordable(double budget, size_t kept) const;

  // ---- shared
  // Whether min_sqnr is decided by samples that nothing else is chosen by: those of
  // QuantizeOptions::evaluate, or those that were held out.
  bool has_judges() const { return options_.evaluate || judges_; }
  // The worst output's SQNR on them.
  double judge(const Graph& rounded);
  const Trials& judging() const { return judges_ ? *judges_ : *trials_; }
  Cut cut() const { return may_cut_ ? Cut::kFlat : Cut::kNone; }
  // Few kept samples are weak evidence of how far values reach: nothing is clipped then, unless that gains
  // much.
  bool few_samples() const { return trials_->size() < kManySamples; }
  RangeRule asked_rule() const;
  // The ranges of all values from one half of the kept samples.
  Observations observe_half(const Graph& graph) const;
  // Of the plan's graph, as long as that stays.
  const std::shared_ptr<const Observations>& half();
  // With ranges from one half of the kept samples, to be measured on the other.
  QuantizationPlan on_half(const Graph& graph, const Observations& half, const RangeRule& rule) const;
  // The plan as one half of the kept samples would have made it, to be measured on the other half.
  QuantizationPlan from_half(const QuantizationPlan& plan) const;
  // The expected result of a plan: of from_half(plan), on samples that it was not made from.
  Noise foresee(const QuantizationPlan& plan, size_t most) const;
  // SQNR of the worst output, on few samples.
  double measured(const QuantizationPlan& plan, Part part = Part::kAll) const;

  Graph& graph_;
  const std::span<Graph* const> others_;  // the same model in other shapes
  const Graph exact_;
  ChoosingSamples samples_;
  const QuantizeOptions& options_;
  std::vector<Turn> turns_;  // of the techniques that are used
  bool may_cut_ = false, may_mix_ranges_ = false, may_widen_ = false, may_leave_float_ = false,
       may_refit_ = false;
  QuantizationPlan plan_;
  std::map<ValueId, QuantParams> fine_;  // for values that may get 16 bits instead of 8
  std::shared_ptr<const Observations> half_;
  // The plan's, as every other kept sample has them.
  std::map<ValueId, QuantParams> half_params_;
  std::map<ValueId, RoundedWeights> half_weights_;
  Correction half_correct_;
  // How the plan was estimated from samples.
  struct Estimators {
    std::vector<Role> roles;       // that ranges were chosen for
    std::vector<RangeRule> rules;  // by number
    size_t rule = 0;               // of all values but these:
    std::map<ValueId, size_t> rule_of;
    std::function<std::map<ValueId, RoundedWeights>(Part)> weights;  // empty: rounded to nearest
    std::function<Correction(Part)> correct;                         // empty: nothing is corrected
  } estimators_;
  std::optional<Trials> trials_;  // kept samples that choose
  std::optional<Trials> judges_;  // kept samples that do not; absent: there are too few samples
  Sensitivity sensitivity_;
  Noise now_;         // to be expected of the plan
  size_t few_ = 4;    // samples that one measuring of many may take
  size_t fewer_ = 8;  // and one of very many
  QuantizeSummary summary_;
  WorkLeft work_;
  // The phase as it is reported.
  const Phase* phase_ = &phase::kCalibrating;
  int64_t done_ = 0, total_ = -1;
};

}  // namespace sinter::convert
