// What an SQNR that was measured on samples says about samples like these.
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
// the tail of the measured noise is, and at least 50 times as loud as the mean. `signal` and `noise` hold the
// squares of each sample. nullopt: of fewer than two samples, or where leaving one out leaves no signal or no
// noise.
std::optional<Interval> sqnr_interval(std::span<const double> signal, std::span<const double> noise);

// An interval wider than this, in dB, says that the samples are too few to tell.
inline constexpr double kTellingWidth = 10;

// The SQNR that single samples have, in dB; 999: no noise, -999: noise without any signal.
struct SampleSqnr {
  double median = 0, worst = 0;
};
// Returns them for the same squares; nullopt: of no samples.
std::optional<SampleSqnr> sample_sqnr(std::span<const double> signal, std::span<const double> noise);

// What is known about an output besides its SQNR over all samples.
struct SqnrSpread {
  std::optional<Interval> interval;
  std::optional<SampleSqnr> single;
};

}  // namespace sinter::convert
