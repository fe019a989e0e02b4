// Rounding shifts the mean of what a product gives, channel by channel; its bias can take that back.
//
// Both work on the graph after place_quantizers and before the integer pass. `exact` is the float graph that
// it was made from (same ids; its weights before any rounding, adaptive_rounding.h included). They return the
// number of products that got another bias (or one at all).
#pragma once

#include <span>

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

// What weights lost by rounding times the mean of the input that was seen of `exact` (with numbers per
// channel). Neglects borders, and that inputs are rounded as well. Costs no run.
int correct_biases(Graph& rounded, const Graph& exact, const Observations& seen);

// The mean of every product's result is measured in both graphs, product after product with those before it
// corrected, as far as samples agree on it. Runs a part of `rounded` on these samples once for each product
// in the longest chain.
int correct_biases(Graph& rounded, const Graph& exact, std::span<const Sample> samples,
                   const RunnerOptions& options);

}  // namespace sinter::convert
