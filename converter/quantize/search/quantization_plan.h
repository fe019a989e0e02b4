// A float graph and all that was decided about its rounding: together they give the integer graph.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "converter/quantize/integers/insert_quantizers.h"
#include "converter/quantize/integers/integer_recurrent.h"
#include "converter/quantize/integers/standard_form.h"

namespace sinter::convert {

// Weights that are multiples of their scale already, and the bias that goes with them.
struct RoundedWeights {
  ConstantPtr weights, bias;  // bias: null if there is none
};

// A value that gets 16 bits where others get 8.
struct WideValue {
  QuantParams params;
  std::string why;
};

// Works on the graph with everything rounded, before it is put on integers.
using Correction = std::function<void(Graph& rounded, const Graph& exact)>;

struct QuantizationPlan {
  Graph graph;                            // float; what a technique rewrites
  std::map<ValueId, QuantParams> params;  // of every value that may be rounded
  std::map<ValueId, WideValue> wide;      // instead of these
  RecurrentScales recurrent;              // recurrent layers on integers, unless they are left
  LeftMap left;                           // operations that are kept float
  // The weights of products, by their result, which replace the graph's own wherever they run on integers.
  std::map<ValueId, RoundedWeights> weights;
  Correction correct;
};

struct IntegerGraph {
  Graph graph;
  int rounded = 0;                // values
  size_t integer_steps = 0;       // that give integers
  std::vector<LayerFate> layers;  // that take or give float32, in order
};
// Those that differ from the graph's in one that was made from it.
std::map<ValueId, RoundedWeights> rounded_weights(const Graph& graph, const Graph& rounded);

// The plan's float graph, weights of integer products as the plan rounds them.
Graph with_rounded_weights(const QuantizationPlan& plan, const std::vector<Role>& roles);

IntegerGraph build(const QuantizationPlan& plan);
// Returns the same roundings in the form of the ONNX standard; recurrent layers compute in float.
Graph build_standard(const QuantizationPlan& plan, StandardForm* form);

}  // namespace sinter::convert
