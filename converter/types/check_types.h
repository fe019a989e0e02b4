// The type invariants of a finished graph, checked in every conversion.
#pragma once

#include <string>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Types the graph again, from its inputs, its constants and the operations' attributes. Empty if
// - every operation takes the operand types that it has, and gives the types that its results have;
// - none computes in float16, bfloat16 or float8, unless its result is marked as requested
// (Value::requested);
// - every Cast is the model's own or has an entry in the ledger.
// Otherwise the first fault in words. Decides nothing and changes nothing.
std::string check_types(const Graph& graph);

}  // namespace sinter::convert
