// Execution order: among the orders that the operands allow, one whose largest sum of live bytes is smallest.
//
// A level holds the sets of steps that may have been executed, each with the smallest peak of any order that
// leads there: dynamic programming over sets, as what lives after a set does not depend on its order. A step
// that frees at least what it makes, within the peak so far, is taken at once, since nothing is gained by
// waiting. Where a level has more sets than the search keeps, those with the smallest peaks stay, and the
// result remains unproved. With several memories the peak is the sum of theirs, and only the bound can
// prove it.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/plan/elide.h"

namespace sinter::convert {

struct StepOrder {
  std::vector<size_t> nodes;  // node indices in their new order
  uint64_t peak = 0;          // largest sum of bytes live in one step, workspaces included; of each memory
  bool proved = true;         // no other order has a smaller one
};

// The memory that a step needs while it runs, and the memory that it saves where output 0 may be placed over
// an operand 0 that dies there.
struct StepMemory {
  uint64_t workspace = 0, overlap = 0;
};

// The largest sum of live bytes in the graph's own order; arguments as below.
uint64_t given_order_peak(const Graph& graph, const Storage& storage, const std::vector<StepMemory>& steps,
                          const std::vector<ValueId>& held);

// `steps`: one for each node. `held`: values that live until the end besides the graph's
// outputs. Keeps the given order where no other is strictly better. `effort`: of the budget.
StepOrder find_step_order(const Graph& graph, const Storage& storage, const std::vector<StepMemory>& steps,
                          const std::vector<ValueId>& held, double effort = 1);

}  // namespace sinter::convert
