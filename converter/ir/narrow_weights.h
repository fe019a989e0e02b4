// Weights that a product may read in the narrow floating-point type from which they were widened.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// The numbers of a layer's weights from which reading narrow ones takes less time than reading wide ones.
// Fewer weights stay in a cache, packed, unless the model's layers together exceed it, so that each run reads
// all of them from memory. A convolution has more pixels, so that packing, and Winograd's algorithm, save
// time; it reads narrow filters where packed ones would take much memory.
inline constexpr int64_t kNarrowLayerElements = 1 << 20, kNarrowFilterElements = 1 << 22;
inline constexpr int64_t kManyElements = 1 << 22, kNarrowOfManyElements = 1 << 14;

// Returns the number of weights from which a layer is read narrow, in a model with `all` weights.
inline int64_t narrow_layer_elements(int64_t all) {
  return all >= kManyElements ? kNarrowOfManyElements : kNarrowLayerElements;
}

// Returns it for a graph whose weights are those of products for which `counts(weights)`.
template <class Counts>
int64_t narrow_layer_elements(const Graph& graph, const Counts& counts) {
  int64_t all = 0;
  for (const Node& node : graph.nodes)
    if (node.op() == Op::kFullyConnected || node.op() == Op::kMatMul)
      if (const ConstantPtr& c = graph.value(node.inputs[1]).constant; c && counts(*c)) all += c->size();
  return narrow_layer_elements(all);
}

// The narrow weights of one graph, in the state in which this object is made.
class NarrowWeights {
 public:
  explicit NarrowWeights(const Graph& graph);
  // Returns the narrow weights of a FullyConnected or Conv if there are enough of them, else null.
  ConstantPtr of(const Node& node) const;
  // Such numbers and their operand, which may also be the scales of weights of few bits, of any number.
  struct Operand {
    size_t index = 0;
    ConstantPtr narrow;
  };
  Operand operand_of(const Node& node) const;

 private:
  const Graph& graph_;
  int64_t fewest_ = kNarrowLayerElements;  // the fewest weights of a layer
};

}  // namespace sinter::convert
