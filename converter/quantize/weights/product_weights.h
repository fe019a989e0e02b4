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

  // The first input channel of an output channel.
  int64_t first_column(int64_t row) const { return depthwise ? row / per_column : row / per_group * each; }
  // Calls f(element, output channel, input channel) for every weight, in the order in which they are stored.
  template <class F>
  void for_each(const F& f) const {
    const int64_t count = row_size * rows;
    if (depthwise) {
      for (int64_t i = 0; i < count; i += rows)
        for (int64_t row = 0; row < rows; ++row) f(i + row, row, first_column(row));
      return;
    }
    for (int64_t row = 0, i = 0; row < rows; ++row)
      for (const int64_t first = first_column(row), end = i + row_size; i < end;)
        for (int64_t column = first; column < first + each; ++column, ++i) f(i, row, column);
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
