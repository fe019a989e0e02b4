// The operands of a file's step are limited; wider joins become trees of joins.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

inline constexpr size_t kMostOperands = 100;  // the runtime's limit is 128, outputs counted

// Splits every Concat with more inputs, in bodies too.
void limit_operands(Graph& graph);

}  // namespace sinter::convert
