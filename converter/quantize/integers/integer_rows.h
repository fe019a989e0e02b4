// The arithmetic that has its own integer operation (QAdd, QMul, QMatMul, QMean, QAvgPool, QPRelu,
// QSoftmax), as far as attributes, dimensions and constants decide. Scales decide the rest (integer_form.h).
//
// Asked where a graph is rounded and where integer operations are emitted, so that nothing is rounded for an
// operation that then does not exist. Products with constant weights, tables and movement are apart.
#pragma once

#include <cstdint>

#include "converter/ir/graph.h"

namespace sinter::convert {

// `type`: of the operands' integers, int8 or int16.
bool has_integer_row(const Graph& graph, const Node& node, DType type);

// The elements that each element of the result is a sum or mean of; 0: the node is neither.
int64_t summed_elements(const Graph& graph, const Node& node);

}  // namespace sinter::convert
