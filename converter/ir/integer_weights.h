// Constant weights as integers of 8 bits, with one scale for each output channel.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "converter/ir/constant.h"

namespace sinter::convert {

// The channels of a tensor's elements.
class Channels {
 public:
  Channels(const Dims& dims, int64_t axis) : count_(dims[static_cast<size_t>(axis)]) {
    for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) inner_ *= dims[i];
  }
  size_t of(size_t i) const { return i / static_cast<size_t>(inner_) % static_cast<size_t>(count_); }
  size_t count() const { return static_cast<size_t>(count_); }
  // Calls use(i) for each element i of a channel, in order; the tensor has `size` elements.
  template <class Use>
  void each(size_t channel, size_t size, const Use& use) const {
    const auto inner = static_cast<size_t>(inner_), stride = inner * count();
    for (size_t start = channel * inner; start < size; start += stride)
      for (size_t i = start; i < start + inner; ++i) use(i);
  }

 private:
  int64_t count_, inner_ = 1;
};

// Returns std::nearbyint of a number below 2^51 in the default rounding: the sum has no bits for a fraction.
inline double nearest_whole(double x) {
  constexpr double kPlaces = 0x1.8p52;
  return std::copysign((x + kPlaces) - kPlaces, x);
}

struct IntegerWeights {
  ConstantPtr q;                   // int8, with the constant's dims
  std::vector<double> scales;      // one for each channel; 0: all weights of the channel are 0
  std::vector<int8_t> zeros;       // empty, or one for each channel
  bool wide = false;               // some q is -128
  std::vector<double> magnitudes;  // for each channel the sum of |q - zero|
};

// Returns the smallest number of steps (up to 255) in the largest weight of a channel with which all weights
// are whole numbers of steps; 0 if there is none.
int whole_steps(const std::vector<double>& items, double largest);

// Returns `constant` (float32) as (q - zero) * scale along `axis`, if it is exactly that but for the rounding
// of the product, because it was dequantized, or because its values show it; else null.
std::shared_ptr<const IntegerWeights> integer_weights(const ConstantPtr& constant, int64_t axis);

// Returns integers of any type as int8 less one zero point, which is as near to 0 as possible, without scales
// and magnitudes; nothing if they span more than 8 bits.
std::optional<IntegerWeights> byte_weights(const ConstantPtr& numbers);

// Returns the weights, in float32, rounded to whole numbers of a step per channel, at most 127 steps: their
// own steps if they have some (adaptive_rounding.h). Steps are at least `least`, if given.
ConstantPtr in_steps(const ConstantPtr& constant, int64_t axis, const std::vector<double>& least = {});

}  // namespace sinter::convert
