// What must hold of types once a graph is finished, checked in every conversion.
#pragma once

#include <string>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Empty if every Cast is the model's own or has an entry in the ledger, and typing the graph again decides
// nothing new. Otherwise the first fault in words.
std::string check_types(const Graph& graph);

}  // namespace sinter::convert
