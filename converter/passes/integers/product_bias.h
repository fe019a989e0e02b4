// How the bias of an integer product is kept: in whole steps of the accumulator, which are made finer where
// the weights leave room, or apart from it in float.
#pragma once

#include <cstdint>

namespace sinter::convert {

// One output channel of a product on integers. A step of its accumulator is input scale * weight scale.
struct ChannelProduct {
  double bias = 0;        // in steps of the accumulator
  double reach = 0;       // the largest sum without bias, in steps
  double most = 0;        // what the accumulator holds
  int doublings = 0;      // by which the weights may grow
  double multiplier = 0;  // from steps of the accumulator to those of an integer result; 0: a float result
  int64_t least = 0, largest = 0;  // integer results less their zero point
};

// The bias as a whole number `sum` of 2^-doublings steps.
struct KeptBias {
  int doublings = 0;
  double sum = 0;
  // By which results can be wrong, in their steps; of float results in steps of the accumulator. 0: no result
  // is wrong, as far as float32 holds the bias and the scales.
  double error = 0;
};

// The coarsest steps that keep every result, else the finest ones.
KeptBias keep_bias(const ChannelProduct& channel);

// Returns the scale of the weights of a channel that has none but 0, whose result is its bias: with whole
// steps of the result (`y_scale`), or with fine ones where the result is float (0).
double empty_channel_scale(double bias, double x_scale, double y_scale);

}  // namespace sinter::convert
