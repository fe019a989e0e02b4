// `--activations int8`: products with weights of few bits round their activations to int8, block by block,
// and sum products of integers (attribute activation_bits of LowBitFullyConnected).
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// In bodies too. Returns how many products there are; those with weights that are floats or indices into a
// table stay as they are.
int round_activations(Graph& graph);

}  // namespace sinter::convert
