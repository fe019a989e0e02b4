// Samples of a model with state: they hold what the caller gives, and the state comes from the runs before.
//
// Calibration and evaluation take samples one by one, in any order and several times. Each therefore gets the
// state that the float model has reached when all earlier ones of its sequence have run. What is measured
// with them is the noise of one run that begins with exact state; `sinter compare --stateful` measures whole
// sequences.
#pragma once

#include <cstdint>
#include <memory>

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

// Runs a graph that has states on samples without them: it begins each run with what it kept.
class StatefulRunner {
 public:
  StatefulRunner(const Graph& graph, const RunnerOptions& options);
  // The sample with the states that the next run begins with: one constant per input of the graph.
  Sample complete(const Sample& given) const;
  // Throws DataError where the data made it fail.
  void run(const Sample& given);
  TensorView output(size_t index) const { return runner_.output(index); }
  // Initial values again.
  void reset();

 private:
  std::vector<GraphState> states_;
  std::vector<ConstantPtr> initial_, now_;  // by state
  std::vector<int> state_of_;               // by input: which state it is, or -1
  GraphRunner runner_;
};

// The source's samples, each completed with state. `sequence`: N samples in a row are one sequence; 0: all of
// them are. `most`: the first N; -1: all. Each pass over the samples runs the graph on all of them.
std::unique_ptr<SampleSource> with_states(std::unique_ptr<SampleSource> source, const Graph& graph,
                                          const RunnerOptions& options, int64_t sequence, int64_t most);

}  // namespace sinter::convert
