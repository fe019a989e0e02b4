// What an operation of a float graph costs in float32, on int8 and on int16: the table that decides where
// integers would be slower. Nanoseconds of one core with AVX-512 and dot products of bytes, measured by
// bench/op_backends.cc; pure functions of the graph, so that a conversion gives the same everywhere. Only
// ratios mean something.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Products of two numbers that are summed up: convolutions, products of matrices, recurrent layers,
// attention.
double multiply_adds(const Graph& graph, const Node& node);

double float_cost(const Graph& graph, const Node& node);
// As the integer operation that it becomes. Operations that stay float cost what they do.
double int8_cost(const Graph& graph, const Node& node);
// The same with activations of 16 bits.
double int16_cost(const Graph& graph, const Node& node);
// Quantize, Dequantize or Requantize of so many elements, the latter being the dearer one.
double boundary_cost(int64_t elements);

}  // namespace sinter::convert
