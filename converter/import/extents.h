// Values whose used length is only known while running: how operations hand the length on.
#pragma once

#include <string>
#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Gives the results of an operation the extents that follow from its inputs'. False where the operation would
// mix used elements with those beyond the length; `why` says so.
bool carry_extents(Graph& graph, const OpAttrs& attrs, const std::vector<ValueId>& inputs,
                   const std::vector<ValueId>& results, std::string* why);

}  // namespace sinter::convert
