// Bounds of the numbers of a graph in float32, which tell whether a type of 16 bits holds them.
#pragma once

#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Infinity stands for what is not known.
struct HalfBounds {
  std::vector<double> values;  // by value: no element is larger in magnitude, NaN aside
  std::vector<double> sums;    // by node: nor is what it adds up before it clamps
};
HalfBounds half_bounds(const Graph& graph);

}  // namespace sinter::convert
