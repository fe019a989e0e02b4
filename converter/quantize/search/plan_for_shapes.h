// The decisions of a quantization, taken over by the same model in other shapes (--shapes): ranges, rounded
// weights, corrected biases and what is kept in float are those of the set that was calibrated, so that the
// sets share their constants.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "converter/quantize/search/quantization_plan.h"

namespace sinter::convert {

// Both graphs have the same operations on the same values, sizes apart. Empty, or the first difference.
std::string shape_difference(const Graph& graph, const Graph& other);

// The biases that a plan's integer graph has, by what the products compute.
struct CorrectedBiases {
  std::vector<Op> operations;  // of the graph with everything rounded
  std::map<ValueId, ConstantPtr> biases;
};
CorrectedBiases corrected_biases(const QuantizationPlan& plan);

// `plan`, made from `exact`, for `other`, which does not differ (shape_difference). Throws UsageError where a
// technique has changed a constant that depends on the shape.
QuantizationPlan plan_for_shapes(const QuantizationPlan& plan, const Graph& exact, const Graph& other,
                                 const CorrectedBiases& corrected);

}  // namespace sinter::convert
