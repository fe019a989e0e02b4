#include "converter/quantize/ranges/tail.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sinter::convert {
namespace {

constexpr size_t kFewestExceeding = 4;
constexpr double kUsualShape = 0.25, kUsualWeight = 10;  // of the prior, in samples
constexpr double kExponential = 1e-6;                    // a shape of no effect

}  // namespace

void SampleMaxima::add(float maximum) {
  if (largest_.size() > kTailSamples) {
    if (!(maximum > largest_.back())) return;
    largest_.pop_back();
  }
  largest_.insert(std::upper_bound(largest_.begin(), largest_.end(), maximum, std::greater<>()), maximum);
}

double Tail::level(double samples) const {
  const double times = share * samples;
  if (times <= 1) return threshold;
  return threshold +
         scale * (std::fabs(shape) < kExponential ? std::log(times) : (std::pow(times, shape) - 1) / shape);
}

Tail fit_tail(const std::vector<float>& largest, uint64_t samples) {
  Tail tail;
  const size_t exceeding =
      std::min(kTailSamples, std::max(kFewestExceeding, static_cast<size_t>(samples / 4)));
  if (largest.size() <= exceeding) return tail;
  const auto n = static_cast<double>(exceeding);
  tail.threshold = largest[exceeding];
  tail.share = n / static_cast<double>(samples);
  // The mean of the excesses, and that of each times the share of larger ones.
  double mean = 0, weighted = 0;
  for (size_t i = 0; i < exceeding; ++i) {
    const double excess = largest[i] - tail.threshold;
    mean += excess / n;
    weighted += excess * (static_cast<double>(i) + 0.35) / n / n;
  }
  if (!(mean > 0)) return tail;  // all reach the same, as behind a clamp
  const double moments = mean - 2 * weighted;
  const double shape = moments > 0 ? 2 - mean / moments : kUsualShape;
  tail.shape = std::min((n * shape + kUsualWeight * kUsualShape) / (n + kUsualWeight), 0.95);
  tail.scale = mean * (1 - tail.shape);
  return tail;
}

}  // namespace sinter::convert
