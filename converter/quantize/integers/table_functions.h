// Which values are functions of one other value, element by element: what one table can replace, however many
// nodes write it out.
#pragma once

#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// For every value the float32 value that it is a function of; itself where it is none. No function takes more
// nodes than the integer pass follows.
std::vector<ValueId> function_roots(const Graph& graph);
// Whether a node only does what makes a function of one value.
bool is_function(const std::vector<ValueId>& roots, const Node& node);

}  // namespace sinter::convert
