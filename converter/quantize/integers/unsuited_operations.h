// Operations that int8 does not suit, whatever the ranges are.
#pragma once

#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Nodes that are kept in float:
//  - roots, logarithms and divisions of values that come near zero, where a few integers give most of the
//    results: power spectra, variances (what follows from 1 + x or exp(x) is none of these);
//  - what is normalized by such a number, until a product reads it: sums and products with it.
// `roots`: see table_functions.h.
std::vector<bool> steep_nodes(const Graph& graph, const std::vector<ValueId>& roots);

}  // namespace sinter::convert
