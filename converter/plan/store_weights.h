// store-weights: constants that have a recipe are written as what they come from; a prepare list widens them
// when a session is created. In bodies too.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Fills graph.prepare and renumbers values; what the steps read keeps its constant, so that planning goes on
// as before. Values that are public, captured, or the length of a bounded dimension stay as they are.
void store_weights(Graph& graph);

}  // namespace sinter::convert
