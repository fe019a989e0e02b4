// Rounding shifts the mean of what a product gives, channel by channel; its bias can take that back.
//
// Both work on the graph after place_quantizers and before the integer pass. `exact` is the float graph that
// it was made from (same ids; its weights before any rounding, adaptive_rounding.h included). They return the
// number of products that got another bias (or one at all).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "converter/quantize/ranges/observe.h"
#include "converter/quantize/weights/product_weights.h"

namespace sinter::convert {

// A correction by means: the loss of weights by rounding times the mean of the input that was seen in `exact`
// (with numbers per channel). It neglects borders and the rounding of inputs, and costs no run. Weights that
// were corrected before are not read again, because trials round most of them alike.
class MeanCorrection {
 public:
  explicit MeanCorrection(Observations seen) : seen_(std::move(seen)) {}
  int operator()(Graph& rounded, const Graph& exact);

 private:
  struct Lost {
    std::weak_ptr<const Constant> exact, rounded;
    std::vector<double> sums;  // of each output channel
  };
  const std::vector<double>& lost(const ProductWeights& exact, const ProductWeights& rounded,
                                  const TensorSummary& input, ValueId output);

  Observations seen_;
  std::map<ValueId, Lost> lost_;  // by the product's result, the last weights of each
};

// The mean of every product's result is measured in both graphs, product after product with those before it
// corrected, as far as samples agree on it. Runs a part of `rounded` on these samples once for each product
// in the longest chain.
int correct_biases(Graph& rounded, const Graph& exact, std::span<const Sample> samples,
                   const RunnerOptions& options);

}  // namespace sinter::convert
