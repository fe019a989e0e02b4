// The effect of a changed graph on the outputs, measured on a few samples that are kept.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "converter/ir/quant_params.h"
#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/search/sqnr_interval.h"
#include "converter/quantize/work_left.h"

namespace sinter::convert {

// The noise of every output: the squares of its errors over those of its exact values, summed over samples.
// Integers such as those of an ArgMax have no such noise: 0 beside outputs of floating-point numbers, by
// which all is chosen then, else the share of elements that differ.
struct Noise {
  std::vector<double> outputs;
  std::vector<std::optional<double>> unequal;  // of outputs of integers, the share of elements that differ

  double worst() const;
  // SQNR of the worst output; 999: no noise.
  double worst_db() const;
  Noise& operator+=(const Noise& other);
};
double to_db(double noise);

// Two graphs with the same inputs and outputs side by side on all samples, none of which is kept. `count`:
// how many there were.
Noise measure_all(const Graph& exact, const Graph& candidate, SampleSource& samples,
                  const RunnerOptions& options, const std::function<void(int64_t, int64_t)>& progress,
                  int64_t* count);

// Which of the kept samples: what is chosen on one half shows on the other what it is worth. All of them,
// where they are too few to be halved.
enum class Part { kAll, kEven, kOdd };

// Fewer samples are not halved.
inline constexpr size_t kFewestHalved = 8;

class Trials {
 public:
  // The number of samples of a graph that may be kept: a few MB of inputs and outputs.
  static size_t most_samples(const Graph& exact);

  // The exact outputs are computed here. The graph is copied where it must be kept.
  Trials(const Graph& exact, std::vector<Sample> samples, RunnerOptions options);

  // Counts what is measured and observed from now on there, which must outlive this.
  void count(WorkLeft* work) { work_ = work; }
  // Counts what was done between two measurements.
  void did(Work kind, double units = 1) const {
    if (work_ != nullptr) work_->did(kind, units);
  }

  // Takes the samples of `other`, trials of the same graph, behind its own.
  void join(Trials other);

  size_t size() const { return samples_.size(); }
  // Whether there are enough for parts.
  bool halved() const;
  std::vector<Sample> samples(Part part) const;
  // The differences of the exact outputs between samples: see QuantizeSummary::variation. nullopt: of fewer
  // than 8 samples.
  std::optional<double> variation() const;
  // A graph with the same inputs and outputs, on `most` samples, evenly spread over the part.
  Noise measure(const Graph& candidate, size_t most, Part part = Part::kAll) const;
  Noise measure(const Graph& candidate) const { return measure(candidate, size()); }
  // The same on all samples, with what every output's samples say; nothing of outputs of integers.
  Noise measure(const Graph& candidate, std::vector<SqnrSpread>* spreads) const;

  // The exact graph again, with one value rounded at a time.
  class Probe {
   public:
    // `exact`: computes what the exact graph does (its weights may be scaled otherwise).
    Probe(const Trials& trials, const Graph& exact);
    // By every other sample, so that what only one half shows can be distinguished from what both show. Of
    // one sample: the same twice.
    struct Halves {
      Noise even, odd;
      Noise both() const;
    };
    Halves round(ValueId value, const QuantParams& params, size_t most, Part part = Part::kAll);

   private:
    const Trials& trials_;
    GraphRunner runner_;
  };
  // The statistics of these values over the kept samples.
  Observations observe(const Graph& graph, std::span<const ValueId> values, bool channels,
                       Part part = Part::kAll) const;

 private:
  bool belongs(size_t sample, Part part) const;
  // `most` of a part, evenly spread over it.
  std::vector<size_t> chosen(size_t most, Part part) const;
  void add(const GraphRunner& runner, size_t sample, std::vector<double>* signal,
           std::vector<double>* noise) const;

  RunnerOptions options_;
  WorkLeft* work_ = nullptr;
  std::vector<Sample> samples_;
  size_t outputs_ = 0;
  std::vector<DType> types_;                            // by output
  std::vector<std::vector<std::vector<float>>> exact_;  // by sample, by output
};

}  // namespace sinter::convert
