// The order of steps, as far as states depend on it.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Moves the steps that read the old content of a state before the step that makes the new one, where operands
// permit it, so that the new one can be written over the old one. Other steps keep their order.
void read_states_early(Graph& graph);

}  // namespace sinter::convert
