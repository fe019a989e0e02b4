#include "converter/passes/integers/product_bias.h"

#include <algorithm>
#include <cmath>

namespace sinter::convert {
namespace {

constexpr double kOfNumbers = 0x1p-22;     // relative: the rounding of bias and scales to float32
constexpr int64_t kMostThresholds = 1024;  // that are looked at one by one

// Whole numbers from `low` to `high`, both apart; empty where `low` is not below `high`.
struct Interval {
  double low, high;
};

// Returns the biases, in units of `unit` steps, with which every sum of products is rounded to the result
// that the exact bias gives: none of the sums is between a threshold of the result and its neighbour's.
Interval right_sums(const ChannelProduct& c, double unit) {
  const double scale = 1 / unit;
  Interval sums{-c.most, c.most};
  for (int64_t n = c.least + 1; n <= c.largest && sums.low < sums.high; ++n) {
    const double threshold = (static_cast<double>(n) - 0.5) / c.multiplier;
    const double first = std::ceil(threshold - c.bias);  // the smallest sum of products with this result
    if (std::fabs(first) > c.reach + 1) continue;
    const double margin = kOfNumbers * std::fabs(threshold) * scale;
    sums.low = std::max(sums.low, (threshold - first) * scale + margin);
    sums.high = std::min(sums.high, (threshold - first + 1) * scale - margin);
  }
  return sums;
}

}  // namespace

KeptBias keep_bias(const ChannelProduct& c) {
  int finest = c.doublings;
  while (finest > 0 && std::ldexp(std::fabs(c.bias) + c.reach + 1, finest) > c.most) --finest;
  for (int k = 0; k <= finest; ++k) {
    const double bias = std::ldexp(c.bias, k), sum = std::nearbyint(bias);
    if (std::fabs(bias - sum) <= kOfNumbers * std::fabs(bias) + kOfNumbers) return {k, sum, 0};
  }
  const bool thresholds = c.multiplier > 0 && c.largest - c.least <= kMostThresholds;
  for (int k = 0; thresholds && k <= finest; ++k) {
    const Interval right = right_sums(c, std::ldexp(1.0, -k));
    const double nearest = std::nearbyint(std::ldexp(c.bias, k));
    for (const double sum : {nearest, std::ceil(right.low), std::floor(right.high)})
      if (sum > right.low && sum < right.high) return {k, sum, 0};
  }
  const double bias = std::ldexp(c.bias, finest), sum = std::nearbyint(bias);
  const double error = std::ldexp(std::fabs(bias - sum), -finest);
  return {finest, sum, c.multiplier > 0 ? error * c.multiplier : error};
}

double empty_channel_scale(double bias, double x_scale, double y_scale) {
  return (y_scale > 0 ? y_scale : std::max(std::fabs(bias) * 0x1p-24, 0x1p-60)) / x_scale;
}

}  // namespace sinter::convert
