// Operands that kernels take in a narrower floating-point type, and widen where they read them.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

constexpr bool takes_narrow(Op op, size_t operand) {
  // weights
  return (op == Op::kExpertFullyConnected && operand == 2) ||
         (op == Op::kLowBitFullyConnected && operand == 1);
}
// Whether the operand keeps its type: it is such a constant, or the keys or values of sequences with lengths,
// of which Attention widens only those that exist.
inline bool stays_narrow(const Graph& graph, const Node& node, size_t operand) {
  constexpr size_t kLengths = 4;
  const ValueId id = node.inputs[operand];
  if (node.op() == Op::kAttention)
    return id >= 0 && (operand == 1 || operand == 2) && node.inputs.size() > kLengths &&
           node.inputs[kLengths] >= 0;
  return id >= 0 && takes_narrow(node.op(), operand) && graph.is_constant(id);
}

}  // namespace sinter::convert
