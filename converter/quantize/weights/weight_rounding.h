// Rounding a row of weights for the smallest error of its result: (w - q)^T H (w - q), H how its inputs vary
// together.
//
// With H = R^T R that is the length of R (w - q), R upper triangular. From the last weight to the first, each
// is rounded to the integer that is nearest once the errors of those behind it are made up for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinter::convert {

class WeightRounding {
 public:
  // `h` [n, n] symmetric, destroyed. `damping` times the mean of its diagonal is added to the diagonal.
  WeightRounding(std::vector<double> h, int64_t n, double damping);
  // The integers within [-127, 127] of as many rows [n] as there are steps; never worse than rounding to
  // nearest. Rows whose step is 0 get zeros.
  std::vector<int> round(std::span<const double> weights, std::span<const double> steps) const;

 private:
  size_t n_;
  std::vector<size_t> order_;  // those that vary most come last
  std::vector<double> r_;      // [n, n], upper
};

// The step up to largest / 127 that loses least, when each weight's error counts `importance` times.
double best_step(std::span<const double> weights, std::span<const double> importance);

}  // namespace sinter::convert
