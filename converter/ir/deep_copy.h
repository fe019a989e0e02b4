// A copy of a graph that shares no body with it, because planning changes bodies, too.
#pragma once

#include <memory>

#include "converter/ir/graph.h"

namespace sinter::convert {

std::shared_ptr<Graph> deep_copy(const Graph& graph);

}  // namespace sinter::convert
