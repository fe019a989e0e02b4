// Integers that a graph has before it is rounded: those of a Dequantize, and bytes that are cast to float32.
// Their readers compute on them as they are.
#pragma once

#include <optional>
#include <vector>

#include "converter/ir/graph.h"
#include "converter/ir/quant_params.h"

namespace sinter::convert {

// The parameters, as int8, of the integers that a node dequantizes per tensor; nullopt: it does not, or not
// int8 or uint8 that are computed.
std::optional<QuantParams> given_integers(const Graph& graph, const Node& node);

// Makes each cast of int8 or uint8 to float32 a Dequantize, which takes over from the operations behind it a
// subtraction of a whole number and a multiplication by one number, with the same float32 results. Channels
// that are multiplied by numbers of their own are rescaled in the weights of the product that reads them.
// Returns the places of the graph's inputs among them, whose scale is not of the model's own numbers.
std::vector<size_t> dequantize_bytes(Graph& graph);

}  // namespace sinter::convert
