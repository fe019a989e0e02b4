// The order in which a tensor of an ONNX model has the axes of a value of the graph.
#pragma once

#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Axis i of the tensor is axis `axes[i]` of the value; -1: an axis of length 1 that the value does not have.
// Axes of length 1 may be missing.
using Axes = std::vector<int>;

Axes same_axes(size_t rank);
// Returns channels-first axes of a channels-last value: 0, rank - 1, 1, 2, ...
Axes channels_first(size_t rank);
// Returns the order of the ONNX value that has this value's name (Value::order).
Axes natural_axes(const Value& value);
// Returns the axes of an operand of this rank that broadcasts with a value of axes.size() axes.
Axes broadcast_axes(const Axes& axes, size_t rank);
Dims tensor_dims(const Dims& dims, const Axes& axes);
// Whether tensors of both orders have the same shape and the same bytes.
bool same_tensor(const Dims& dims, const Axes& a, const Axes& b);
// Whether tensors of both orders have the same bytes.
bool same_bytes(const Dims& dims, const Axes& a, const Axes& b);
// Returns all axes of the value in their order in the tensor; empty if it has another rank.
Axes as_permutation(const Axes& axes, size_t rank);
// Returns the position of a value's axis in a permutation.
int64_t position_of(const Axes& axes, int64_t axis);
// Returns the permutation that takes a tensor of order `from` to `to`, of the same length.
std::vector<int64_t> permutation(const Dims& dims, const Axes& from, const Axes& to);
// Whether the node is a Transpose, a Copy, or a View that only adds and removes axes of length 1: a tensor
// that holds the operand also holds the result, with other axes.
bool passes_tensor_on(const Graph& graph, const Node& node);
// Return the result's axes of such a tensor by the operand's, and the operand's by the result's.
Axes axes_behind(const Graph& graph, const Node& node, const Axes& of_operand);
Axes axes_before(const Graph& graph, const Node& node, const Axes& of_result);

}  // namespace sinter::convert
