#include "converter/quantize/search/sqnr_interval.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

namespace sinter::convert {
namespace {

// Samples that an interval allows for, and by what power of the tail they are louder than the loudest judge.
constexpr double kUnseen = 3, kTailPower = 2.5, kLeastLouder = 2, kMostLouder = 30;
// How much louder than the mean they are at least: where nearly all samples are alike, one in some hundred
// that leaves the ranges can still have most of the noise, and nothing in the others tells of it.
constexpr double kLeastOverMean = 50;

// Beyond which 2.5 % of Student's distribution are.
double student_t(size_t freedom) {
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  if (freedom <= std::size(kTable)) return kTable[freedom - 1];
  // The first terms of Cornish and Fisher's expansion around the normal distribution.
  constexpr double z = 1.959964;
  return z + (z * z * z + z) / (4 * static_cast<double>(freedom));
}

// How much louder than the loudest one samples may be that were not measured: by how far the louder half of
// the measured ones reaches above the median.
double louder_unseen(std::span<const double> noise) {
  std::vector<double> sorted(noise.begin(), noise.end());
  std::sort(sorted.begin(), sorted.end());
  const double median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
  if (!(median > 0)) return kMostLouder;
  double logarithms = 0, count = 0;
  for (const double x : sorted)
    if (x > median) logarithms += std::log(x / median), ++count;
  const double tail = count > 0 ? logarithms / count : 0;
  return std::clamp(std::exp(kTailPower * tail), kLeastLouder, kMostLouder);
}

}  // namespace

std::optional<Interval> sqnr_interval(std::span<const double> signal, std::span<const double> noise) {
  const size_t n = signal.size();
  if (n < 2) return std::nullopt;
  const double all_signal = std::accumulate(signal.begin(), signal.end(), 0.0),
               all_noise = std::accumulate(noise.begin(), noise.end(), 0.0);
  std::vector<double> without(n);
  double mean = 0;
  for (size_t s = 0; s < n; ++s) {
    const double a = all_signal - signal[s], b = all_noise - noise[s];
    if (!(a > 0) || !(b > 0) || !std::isfinite(b)) return std::nullopt;
    without[s] = 10 * std::log10(a / b);
    mean += without[s] / static_cast<double>(n);
  }
  double squares = 0;
  for (const double db : without) squares += (db - mean) * (db - mean);
  const double error = std::sqrt(squares * static_cast<double>(n - 1) / static_cast<double>(n));
  const double whole = 10 * std::log10(all_signal / all_noise), reach = student_t(n - 1) * error;
  // Unobserved samples: by the rule of three, of as many samples again three may be louder than the loudest
  // one.
  const double unseen =
      kUnseen * std::max(louder_unseen(noise) * *std::max_element(noise.begin(), noise.end()),
                         kLeastOverMean * all_noise / static_cast<double>(n));
  const double low = std::min(whole - reach, 10 * std::log10(all_signal / (all_noise + unseen)));
  return Interval{low, whole + reach};
}

std::optional<SampleSqnr> sample_sqnr(std::span<const double> signal, std::span<const double> noise) {
  if (signal.empty()) return std::nullopt;
  std::vector<double> sorted;
  for (size_t s = 0; s < signal.size(); ++s)
    sorted.push_back(!(noise[s] > 0) ? 999
                                     : std::clamp(10 * std::log10(signal[s] / noise[s]), -999.0, 999.0));
  std::sort(sorted.begin(), sorted.end());
  return SampleSqnr{(sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2, sorted.front()};
}

}  // namespace sinter::convert
