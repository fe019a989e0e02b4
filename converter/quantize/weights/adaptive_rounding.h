// Weights rounded to multiples of their scale in the float graph, chosen for what the product gives rather
// than weight by weight. place_quantizers leaves weights alone that are on a scale of at most 127 steps a
// side already.
#pragma once

#include <cstdint>
#include <span>

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

struct AdaptiveRoundingOptions {
  RunnerOptions runner;
  int64_t most_inputs = 1024;  // of one output that are rounded together; longer rows are cut
  double damping = 0.01;       // of the mean variance of the inputs, added to each
};
// Rounds weight after weight and lets the others of the same output make up for the error, given how the
// inputs vary together on these samples (second order, Cholesky); biases take the shift of the mean. Returns
// the number of products whose weights are rounded then.
int round_adaptively(Graph& graph, std::span<const Sample> samples, const AdaptiveRoundingOptions& options);

// About how many multiplications that takes, runs of the graph apart.
double adaptive_rounding_cost(const Graph& graph, const AdaptiveRoundingOptions& options = {});

// Rounds to nearest, with the step for each output channel that loses least when each weight's error counts
// as much as the mean square of its input: a few large weights may be cut. Returns the number of products
// that have such a channel.
int choose_weight_steps(Graph& graph, const Observations& seen);

}  // namespace sinter::convert
