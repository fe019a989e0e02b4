// The operands of a file's step are limited; wider joins become trees of joins.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Splits every Concat with more operands than the runtime takes (kMaxOperands), in bodies too.
void limit_operands(Graph& graph);
// The same for the Concat that a constant's recipe ends with: `c`, or an equal constant with another recipe.
ConstantPtr limit_operands(const ConstantPtr& c);

}  // namespace sinter::convert
