// How much work a call is: counts, which do not depend on the processor.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/backend/kernel.h"

namespace sinter::convert {

// An operation, its attributes and the dims of its operands, which stay the caller's.
struct CallShape {
  struct Operand {
    std::span<const int64_t> dims;
    bool present = false, constant = false;

    double size() const;      // elements; 0: absent
    double last_dim() const;  // 1 for scalars and dims of 0
  };
  Op op;
  const void* attributes;
  std::vector<Operand> inputs, outputs;

  // Without operands, which the caller adds.
  CallShape(Op operation, const void* its_attributes) : op(operation), attributes(its_attributes) {}
  explicit CallShape(const OpCall& call);
  CallShape(const Graph& graph, const Node& node);

  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attributes);
  }
  bool has_output() const { return !outputs.empty() && outputs[0].present; }
};

// Products of two numbers that are summed up: convolutions, products of matrices, recurrent layers,
// attention. 0 for every other operation. A convolution by Winograd's algorithm counts as a direct one.
double multiply_adds(const CallShape& call);

// Multiply-adds by the type of the first factor.
using TypedProducts = std::map<DType, double>;
// Returns the products of one run of an If or Loop from those of its bodies: the branch with the most, or the
// body times the maximum trip count. `attributes` are the step's.
TypedProducts multiply_adds(Op op, const void* attributes, const std::vector<TypedProducts>& bodies);
// Returns the products of one run of the node, with its bodies.
TypedProducts multiply_adds(const Graph& graph, const Node& node);
// Returns the products of one run of the graph.
TypedProducts multiply_adds(const Graph& graph);
// Returns the sum over all types.
double total(const TypedProducts& products);

// All that a call does, in multiply-adds: products as they are, elements by what they are worth.
double estimated_work(const CallShape& call);

}  // namespace sinter::convert
