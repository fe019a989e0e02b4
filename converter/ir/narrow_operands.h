// Operands that kernels take in a narrower floating-point type than they compute in, and widen where they
// read them.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

constexpr bool takes_narrow(Op op, size_t operand) {
  return op == Op::kExpertFullyConnected && operand == 2;  // weights
}
// Whether the operand is such a constant, which keeps its type.
inline bool stays_narrow(const Graph& graph, const Node& node, size_t operand) {
  const ValueId id = node.inputs[operand];
  return id >= 0 && takes_narrow(node.op(), operand) && graph.is_constant(id);
}

}  // namespace sinter::convert
