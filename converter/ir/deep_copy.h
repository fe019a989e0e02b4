// A graph that shares no body with the one that it is copied from. Planning changes bodies, too.
#pragma once

#include <memory>

#include "converter/ir/graph.h"

namespace sinter::convert {

std::shared_ptr<Graph> deep_copy(const Graph& graph);

}  // namespace sinter::convert
