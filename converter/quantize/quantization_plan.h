// A float graph and all that was decided about its rounding: together they give the integer graph.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "converter/quantize/place.h"

namespace sinter::convert {

struct QuantizationPlan {
  Graph graph;                            // float; what a technique rewrites
  std::map<ValueId, QuantParams> params;  // of every value that may be rounded
  LeftMap left;                           // operations that are kept float
  // Works on the graph with everything rounded, before it is put on integers.
  std::function<void(Graph& rounded, const Graph& exact)> correct;
};

struct IntegerGraph {
  Graph graph;
  int rounded = 0;                // values
  size_t integer_steps = 0;       // that give integers
  std::vector<LayerFate> layers;  // that take or give float32, in order
};
IntegerGraph build(const QuantizationPlan& plan);

}  // namespace sinter::convert
