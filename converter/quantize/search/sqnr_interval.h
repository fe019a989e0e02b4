// The confidence interval of an SQNR that was measured on samples.
#pragma once

#include <optional>
#include <span>

namespace sinter::convert {

// The SQNR of an output, in dB, that all samples like the measured ones have with 95 % confidence.
struct Interval {
  double low = 0, high = 0;
};
// The jackknife in dB with Student's t. The low end also allows for three samples that are louder than the
// loudest one, as many as may have been missed (rule of three): 2 to 30 times as loud, the more the heavier
// the tail of the measured noise is. `signal` and `noise` hold the squares of each sample. nullopt: of fewer
// than two samples, or where leaving one out leaves no signal or no noise.
std::optional<Interval> sqnr_interval(std::span<const double> signal, std::span<const double> noise);

}  // namespace sinter::convert
