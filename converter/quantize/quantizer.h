// The stages of a static quantization, and what they know together. quantize.h is what others call.
//
// A stage proposes; whether its proposal is taken is decided by what the outputs hear, most often on samples
// that the proposal was not made from.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "converter/quantize/leave_float.h"
#include "converter/quantize/quantize.h"
#include "converter/quantize/range_rules.h"
#include "converter/quantize/sensitivity.h"

namespace sinter::convert {

// Rewriting and correcting must win this much, in dB.
inline constexpr double kWorthRewriting = 0.5, kWorthCorrecting = 0.2;

class Quantizer {
 public:
  Quantizer(Graph& graph, SampleSource& samples, const QuantizeOptions& options);
  QuantizeSummary run();

 private:
  // ---- quantize.cc
  void keep_what_the_user_wants();
  // A pass over all samples; the first one also keeps some of them for trials.
  Observations observe_all();
  void finish();
  void list_sources();

  // ---- quantize_rewriting.cc: techniques that change the float graph, but not what it computes
  using Rewriting = int (*)(Graph&, const Observations&);
  // Whether the float graph changed. One after the other is tried on what is there; then all of them, for
  // where one alone shows nothing as long as another's noise is louder.
  bool rewrite();
  // A value with other channels is not what the model calls by its name.
  void rename_scaled();

  // ---- quantize_ranges.cc
  void choose(const Observations& seen);
  void choose_ranges(const Observations& seen, const std::vector<Role>& roles);
  // What is moved is as loud as what it is moved from, should it ever be rounded by itself.
  void share_noise(const std::vector<ValueId>& values);

  // ---- quantize_weights.cc: how weights are rounded, and biases that make up for it
  // Recurrent layers whose weights lose too much in 8 bits keep them in float.
  void spare_recurrent();
  // Weights are chosen on one half of the samples, measured on the other, and then chosen on all of them.
  void round_weights();
  void correct_by_means();
  // At last biases by running, and once more whether adaptive rounding is better with that: what is chosen on
  // one half of the samples is measured on the other.
  void correct_by_runs();
  void try_correction(const char* what, std::function<void(Graph&, const Graph&)> correct);

  // ---- quantize_leaving.cc: what stays float, or gets 16 bits
  void leave();
  void leave_by(const char* technique, Remedy remedy);
  void leave_by_accuracy(const std::function<bool(const LeaveTarget&)>& reach);
  void leave_by_evaluation(const std::function<bool(const LeaveTarget&)>& reach);

  // ---- quantize_advice.cc: outputs that have too little signal
  void advise(const Graph& rounded);
  // `leaving`: also by leaving more in float.
  void measure_remedies(bool leaving);

  // ---- shared
  bool enabled(const char* technique) const;
  bool judged_by_evaluation() const { return options_.evaluate && options_.min_sqnr; }
  Cut cut() const { return enabled("function-ranges") ? Cut::kFlat : Cut::kNone; }
  RangeRule asked_rule() const { return {options_.calibrator, options_.activations, 0, cut()}; }
  Step step(const char* what) const;
  // What one half of the kept samples makes of all values.
  Observations observe_half(const Graph& graph) const;
  // Of the plan's graph, as long as that stays.
  const std::shared_ptr<const Observations>& half();
  // With ranges from one half of the kept samples, to be measured on the other.
  QuantizationPlan on_half(const Graph& graph, const Observations& half, const RangeRule& rule) const;
  // Signal to noise of the worst output, on few samples.
  double measured(const QuantizationPlan& plan, Part part = Part::kAll) const;
  double measured(const std::map<ValueId, QuantParams>& params) const;

  Graph& graph_;
  const Graph exact_;
  SampleSource& samples_;
  const QuantizeOptions& options_;
  QuantizationPlan plan_;
  std::map<ValueId, QuantParams> fine_;  // for values that may get 16 bits instead of 8
  std::shared_ptr<const Observations> half_;
  std::map<ValueId, RoundedWeights> half_weights_;  // the plan's, as every other sample has them
  std::optional<Trials> trials_;
  Sensitivity sensitivity_;
  Noise now_;       // of the plan, on all kept samples
  size_t few_ = 4;  // samples that one measuring of many may take
  QuantizeSummary summary_;
};

}  // namespace sinter::convert
