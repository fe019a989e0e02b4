// Weights that a product may read in the narrow floating-point type from which they were widened.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Elements from which reading narrow weights takes less time than reading wide ones: fewer of them stay in a
// cache, packed.
inline constexpr int64_t kNarrowWeightElements = 1 << 20;

// The float16, bfloat16 or float8 numbers that the weights of a FullyConnected or Conv are, if there are
// enough of them; null: none.
ConstantPtr narrow_weights(const Graph& graph, const Node& node);

}  // namespace sinter::convert
