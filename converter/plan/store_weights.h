// store-weights: constants that have a recipe are written as what they come from. Products whose kernels read
// narrow floats get them as operands; a prepare list widens the others when a session is created. In bodies
// too.
#pragma once

#include <functional>

#include "converter/ir/graph.h"
#include "runtime/backend/kernel.h"

namespace sinter::convert {

// Whether some platform of the plan computes `narrow`, a product of which one operand (weights or scales) is
// of a narrower float than the others, and nothing speaks for computing it with a wide one.
using ReadsNarrow = std::function<bool(const OpCall& narrow, size_t operand)>;

// Fills graph.prepare and renumbers values; what the steps read keeps its constant, so that planning goes on
// as before. Values that are public, captured, or the length of a bounded dimension stay as they are.
void store_weights(Graph& graph, const ReadsNarrow& reads_narrow);

}  // namespace sinter::convert
