// The time that a quantization will still take. The work of each phase is counted in units of a few kinds,
// whose seconds are measured as they are done; before the first unit of a kind its seconds are guessed from
// another kind, in the end from the time that observing a sample takes. The counts of later phases are
// expectations, which each phase replaces when it begins and more is known.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>

#include "converter/quantize/phases.h"

namespace sinter::convert {

enum class Work : size_t {
  kObserving,    // a sample, for the statistics of its values
  kRanges,       // of all values, by one rule
  kProbing,      // a sample, with one value rounded
  kRounding,     // a trial of weights that no trial had before
  kTrial,        // any other: a graph is built, planned and run on kTriedSamples
  kWeightSteps,  // all weights rounded in one way from what was observed
  kChoosing,     // an operation that is kept in float, or a value that gets 16 bits
  kCorrecting,   // all biases corrected by runs
};
inline constexpr size_t kWorkKinds = 8;
inline constexpr double kTriedSamples = 8;
// Returns the units of a trial on this number of samples: making the session takes as long as some runs.
inline double trial_units(size_t samples) { return (4 + static_cast<double>(samples)) / (4 + kTriedSamples); }

class WorkLeft {
 public:
  using Clock = std::function<double()>;  // in seconds
  // `changed` is called after every did(), with its kind.
  explicit WorkLeft(Clock clock, std::function<void(Work)> changed = {});

  // Until one unit is measured, it takes as long as `units` of another kind, and `seconds`. Nothing is
  // guessed for kObserving.
  void guess(Work kind, Work like, double units, double seconds);
  // From now on the phase has these units before it, if it is not over.
  void expect(const Phase& phase, Work kind, double units);
  // Forgets the work that earlier phases were expected to do. Phases that are over, or are in no order,
  // change nothing.
  void begin(const Phase& phase);
  // Counts units done in the time since the last call. 0: something that is not counted was done.
  void did(Work kind, double units = 1);
  // Makes one more trial one of kRounding, as the first one is.
  void add_new_weights() { ++new_weights_; }

  // Returns nullopt before the first sample was observed, or before anything is expected.
  std::optional<TimeLeft> left() const;

 private:
  double seconds_of(Work kind) const;
  double seconds_of(size_t phase) const;

  const Clock clock_;
  const std::function<void(Work)> changed_;
  double last_;
  size_t at_ = 0;        // the phase, in kPhasesInOrder
  int new_weights_ = 1;  // trials to come
  bool expects_ = false;
  struct Kind {
    Work like = Work::kObserving;
    double units = 0, seconds = 0;  // until it is measured
    std::optional<double> measured;
  };
  std::array<Kind, kWorkKinds> kinds_;
  std::array<std::array<double, kWorkKinds>, std::size(kPhasesInOrder)> expected_ = {};
};

}  // namespace sinter::convert
