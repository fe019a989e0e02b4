// The share of labelled samples that a graph gets right.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

// Whether these scores mean this label. One number is the class itself (ArgMax), else the largest one wins.
// Scores with a NaN mean none.
bool is_right(const std::vector<double>& scores, int64_t label);

class LabelledData {
 public:
  // `data` as for calibration (no command), with an array `label` of one number a sample. Throws DataError
  // and FileError.
  LabelledData(const std::string& data, const std::string& label, const std::vector<SampleInput>& inputs);
  // Of the first output that is not a state's. The graph's states are carried from sample to sample;
  // `sequence` samples begin with the initial state, all of them together if it is 0.
  double top1(const Graph& graph, const RunnerOptions& options, int64_t sequence = 0);

 private:
  std::unique_ptr<SampleSource> samples_;
  std::vector<int64_t> labels_;
};

}  // namespace sinter::convert
