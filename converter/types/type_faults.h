// The type invariants of a finished graph, checked in every conversion.
#pragma once

#include <string>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Returns the first fault in the types of a graph, in words; empty if
// - every operation takes the operand types that it has, and gives the types that its results have, which are
// inferred again from the graph's inputs, its constants and the operations' attributes;
// - none computes in float16, bfloat16 or float8, unless its result is marked as requested
// (Value::requested);
// - every Cast that may change a number is the model's own, or an entry of the ledger names its node, its
// operand or its result. Which types the entry has is not compared: one entry may stand for several casts.
std::string type_fault(const Graph& graph);

}  // namespace sinter::convert
