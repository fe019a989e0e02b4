// Common parts of products with constant weights: the output and the input channel that a weight joins.
#pragma once

#include <optional>
#include <vector>

#include "converter/ir/graph.h"

namespace sinter::convert {

// Conv, DepthwiseConv, ConvTranspose or FullyConnected in float32 with constant weights, and a constant bias
// or none.
struct ProductWeights {
  ConstantPtr weights, bias;  // bias: null if there is none
  int64_t rows = 0;           // output channels
  int64_t axis = 0;           // of the output channels in the weights
  int64_t columns = 0;        // input channels
  bool depthwise = false;
  double act_min = -kInfinity, act_max = kInfinity;

  // Of element i of the weights.
  int64_t row(int64_t i) const { return depthwise ? i % rows : i / row_size; }
  int64_t column(int64_t i) const {
    return depthwise ? row(i) / per_column : row(i) / per_group * each + i % each;
  }
  int64_t row_size = 1;    // weights of one output channel
  int64_t each = 1;        // input channels of one output channel
  int64_t per_group = 1;   // output channels of one group
  int64_t per_column = 1;  // depthwise: output channels of one input channel
};
std::optional<ProductWeights> product_weights(const Graph& graph, const Node& node);

// The numbers as float32, without a copy in between: weights are large.
ConstantPtr float_constant(const Dims& dims, const std::vector<double>& numbers);

// New operands for a product (null: stays as it is), under the old ones' names.
void set_weights(Graph& graph, Node& node, const std::vector<double>* weights,
                 const std::vector<double>* bias);

}  // namespace sinter::convert
