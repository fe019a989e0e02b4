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

// Zero points, bounds and type of an integer product's result, and whether a weight is -128.
struct ProductIntegers {
  int64_t x_zero = 0, y_zero = 0, q_min = -128, q_max = 127, to = 0, wide = 0;
};
// The attributes of the integer row of Conv, DepthwiseConv, ConvTranspose or FullyConnected.
OpAttrs integer_product(const Node& node, const ProductIntegers& integers);

}  // namespace sinter::convert
