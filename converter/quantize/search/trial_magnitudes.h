// The magnitudes of a graph's values on made-up inputs. They prove nothing, but a model that leaves float16's
// range mostly does so there.
#pragma once

#include <map>

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

// Per float32 value of the main graph that is not a constant: the largest magnitude (infinite: also NaN) on
// inputs between -1 and 1, and on inputs between 0 and 255 (made_up_inputs.h).
struct TrialRange {
  double unit = 0, bytes = 0;
};
// Empty where the graph cannot be run that way (an index out of range, more than 1 GB of weights
// or of memory).
std::map<ValueId, TrialRange> try_out(const Graph& graph, const RunnerOptions& options);

}  // namespace sinter::convert
