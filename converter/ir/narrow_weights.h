// Weights that a product may read in the narrow floating-point type from which they were widened.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Weights of a layer from which reading narrow ones takes less time than reading wide ones: fewer of them
// stay in a cache, packed, unless the model's layers together exceed a cache, so that each run reads all
// weights from memory. A convolution has more pixels, so that packing, and Winograd's algorithm, save time;
// it reads narrow filters where packed ones would take much memory.
inline constexpr int64_t kNarrowLayerElements = 1 << 20, kNarrowFilterElements = 1 << 22;
inline constexpr int64_t kManyElements = 1 << 22, kNarrowOfManyElements = 1 << 14;

// The weights from which a layer is read narrow, of a model whose layers have `all` weights together.
inline int64_t narrow_layer_elements(int64_t all) {
  return all >= kManyElements ? kNarrowOfManyElements : kNarrowLayerElements;
}

// The same of a graph's products with constant weights for which `counts(weights)`.
template <class Counts>
int64_t narrow_layer_elements(const Graph& graph, const Counts& counts) {
  int64_t all = 0;
  for (const Node& node : graph.nodes)
    if (node.op() == Op::kFullyConnected || node.op() == Op::kMatMul)
      if (const ConstantPtr& c = graph.value(node.inputs[1]).constant; c && counts(*c)) all += c->size();
  return narrow_layer_elements(all);
}

// Of one graph, as it is when this is made.
class NarrowWeights {
 public:
  explicit NarrowWeights(const Graph& graph);
  // The float16, bfloat16 or float8 numbers that the weights of a FullyConnected or Conv are, if there are
  // enough of them; null: none.
  ConstantPtr of(const Node& node) const;
  // As `of`, and with which operand it belongs to: also the scales of weights of few bits, however many.
  struct Operand {
    size_t index = 0;
    ConstantPtr narrow;
  };
  Operand operand_of(const Node& node) const;

 private:
  const Graph& graph_;
  int64_t fewest_ = kNarrowLayerElements;  // of a layer
};

}  // namespace sinter::convert
