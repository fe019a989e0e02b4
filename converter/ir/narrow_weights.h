// Weights that a product may read in the narrow floating-point type from which they were widened.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Weights of a layer from which reading narrow ones takes less time than reading wide ones: fewer of them
// stay in a cache, packed. A convolution has more pixels, so that packing, and Winograd's algorithm, save
// time; it reads narrow filters where packed ones would take much memory.
inline constexpr int64_t kNarrowLayerElements = 1 << 20, kNarrowFilterElements = 1 << 22;

// The float16, bfloat16 or float8 numbers that the weights of a FullyConnected or Conv are, if there are
// enough of them; null: none.
ConstantPtr narrow_weights(const Graph& graph, const Node& node);

}  // namespace sinter::convert
