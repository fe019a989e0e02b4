// Constant weights as integers of 8 bits, with one scale for each output channel.
#pragma once

#include <optional>
#include <vector>

#include "converter/ir/constant.h"

namespace sinter::convert {

// Which channel element i of a tensor belongs to.
class Channels {
 public:
  Channels(const Dims& dims, int64_t axis) : count_(dims[static_cast<size_t>(axis)]) {
    for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner_ *= dims[i];
  }
  size_t of(size_t i) const { return i / static_cast<size_t>(inner_) % static_cast<size_t>(count_); }
  size_t count() const { return static_cast<size_t>(count_); }

 private:
  int64_t count_, inner_ = 1;
};

struct IntegerWeights {
  std::vector<int8_t> q;       // as the constant lies
  std::vector<double> scales;  // one for each channel; 0: all weights of the channel are 0
  std::vector<int8_t> zeros;   // empty, or one for each channel
  bool wide = false;           // some q is -128
};

// The smallest number of steps (up to 255) that the largest weight of a channel can be, such that all are
// whole numbers of steps; 0: there is none.
int whole_steps(const std::vector<double>& items, double largest);

// `constant` (float32) as (q - zero) * scale along `axis`, if it is exactly that but for the rounding of the
// product: because it was dequantized, or because its values say so.
std::optional<IntegerWeights> integer_weights(const ConstantPtr& constant, int64_t axis);

// The largest sum of |q - zero| over a channel.
std::vector<double> channel_magnitudes(const IntegerWeights& w, const Dims& dims, int64_t axis);

}  // namespace sinter::convert
