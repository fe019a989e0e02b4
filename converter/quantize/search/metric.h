// The measure of --evaluate on labelled samples: one number, the higher the better.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/samples/carried_states.h"
#include "converter/quantize/samples/labels.h"

namespace sinter::convert {

struct Metric {
  enum class Kind {
    kTop,      // the share of samples whose label is among the `top` highest scores of the first output
    kSqnr,     // of every output against the float model; needs no labels
    kProgram,  // what a program prints (metric_program.h)
  };
  Kind kind = Kind::kTop;
  int64_t top = 1;
  std::string program = {};  // its command
  double seconds = 600;      // that it may take
  bool has_labels() const { return kind == Kind::kTop; }
};
// "top1", "top5", "sqnr" or "cmd:PROGRAM", as --metric takes them. Throws UsageError.
Metric parse_metric(const std::string& name);

// Whether the label is among the `top` highest scores; of equal scores the first is higher. One number is the
// class itself (ArgMax). Scores with a NaN mean no class.
bool is_right(const std::vector<double>& scores, int64_t label, int64_t top = 1);

// The class with the highest score; of equal ones the first. One number is the class itself.
int64_t class_of(const std::vector<double>& scores);

// The scores of a sample: all elements of the first output.
using ScoreSample = std::function<std::vector<double>(const Sample&)>;
// From the first sample on. Throws DataError for a label that is not the number of a score.
double share_right(LabelledSamples& data, const Metric& metric, const ScoreSample& scores);
// The scores of a graph: its first output that is not a state's. Its states are carried from sample to
// sample, and begin anew every `sequence` samples (0: never). Throws DataError where there is no such output.
class GraphScores {
 public:
  GraphScores(const Graph& graph, const RunnerOptions& options, int64_t sequence = 0);
  std::vector<double> operator()(const Sample& sample);
  size_t output() const { return output_; }  // its index

 private:
  StatefulRunner runner_;
  size_t output_ = 0;
  int64_t sequence_, index_ = 0;
};
// The same of a graph.
double share_right(LabelledSamples& data, const Metric& metric, const Graph& graph,
                   const RunnerOptions& options, int64_t sequence = 0);

}  // namespace sinter::convert
