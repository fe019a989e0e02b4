// What one sample in 100,000 exceeds, estimated from few samples, against the distributions' own numbers.
#include "converter/quantize/ranges/tail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace sinter::convert {
namespace {

constexpr double kSamples = 1e5;

// Returns the median, or another quantile, of estimates over true numbers in 200 draws of n samples.
// `inverse`: the number that the share p of samples exceeds.
class Ratios {
 public:
  Ratios(size_t n, const std::function<double(double)>& inverse) {
    std::mt19937_64 bits(17 + n);
    for (int draw = 0; draw < 200; ++draw) {
      SampleMaxima maxima;
      // As std::uniform_real_distribution, whose numbers the standard does not fix.
      for (size_t i = 0; i < n; ++i)
        maxima.add(static_cast<float>(inverse((static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53)));
      const double level = fit_tail(maxima.largest(), n).level(kSamples);
      ratios_.push_back(level / inverse(1 / kSamples));
      seen_.push_back(maxima.largest()[0] / inverse(1 / kSamples));
    }
    std::sort(ratios_.begin(), ratios_.end());
    std::sort(seen_.begin(), seen_.end());
  }
  double operator()(double quantile) const { return ratios_[static_cast<size_t>(quantile * 199)]; }
  double seen() const { return seen_[100]; }  // the median of the largest observed, likewise

 private:
  std::vector<double> ratios_, seen_;
};

double exponential(double p) { return -std::log(p); }
double pareto2(double p) { return std::pow(p, -0.5); }
double pareto3(double p) { return std::pow(p, -1.0 / 3); }
double uniform(double p) { return 1 - p; }

// An estimate that is too large costs int16 steps, up to a limit; one that is too small clips.
TEST(Tail, ExponentialIsNearAtTheMedian) {
  for (const size_t n : {64, 256}) {
    const Ratios r(n, exponential);
    EXPECT_GT(r(0.5), 0.8) << n;
    EXPECT_LT(r(0.5), 1.5) << n;
    EXPECT_GT(r(0.1), 0.5) << n;
    EXPECT_LT(r(0.9), n == 64 ? 3.5 : 3) << n;
    EXPECT_LT(r.seen(), 0.6) << n;
  }
}

TEST(Tail, ParetoWithinAFactorOfFourWhereTheLargestObservedIsFarOff) {
  const Ratios three(256, pareto3), two(256, pareto2);
  EXPECT_GT(three(0.5), 0.5);
  EXPECT_LT(three(0.5), 1.5);
  EXPECT_LT(three.seen(), 0.2);
  EXPECT_GT(two(0.5), 0.3);
  EXPECT_LT(two(0.5), 1.5);
  EXPECT_LT(two.seen(), 0.1);
  for (const Ratios& r : {three, two}) {
    EXPECT_GT(r(0.1), 0.1);
    EXPECT_LT(r(0.9), 4);
  }
}

TEST(Tail, BoundedNumbersGetHardlyMore) {
  const Ratios r(256, uniform);
  EXPECT_GT(r(0.1), 0.95);
  EXPECT_LT(r(0.9), 1.15);
}

TEST(Tail, MoreSamplesNarrowTheEstimate) {
  const auto spread = [](size_t n) {
    const Ratios r(n, exponential);
    return r(0.9) / r(0.1);
  };
  EXPECT_LT(spread(256), 0.8 * spread(32));
}

TEST(Tail, AnOutlierIsExpectedAgain) {
  SampleMaxima maxima;
  for (int i = 0; i < 127; ++i) maxima.add(1 + static_cast<float>(i % 10) / 100);
  const double usual = fit_tail(maxima.largest(), 127).level(kSamples);
  EXPECT_LT(usual, 2);
  maxima.add(50);
  EXPECT_GT(fit_tail(maxima.largest(), 128).level(kSamples), 50);
}

TEST(Tail, TellsNothingFromTooFewSamples) {
  SampleMaxima maxima;
  for (const float x : {1, 2, 3, 4}) maxima.add(x);
  EXPECT_EQ(fit_tail(maxima.largest(), 4).share, 0);
  EXPECT_EQ(fit_tail({}, 0).share, 0);
  maxima.add(5);
  EXPECT_GT(fit_tail(maxima.largest(), 5).share, 0);
}

TEST(Tail, ValuesBehindAClampHaveTheClampsBound) {
  SampleMaxima maxima;
  for (int i = 0; i < 100; ++i) maxima.add(6);
  EXPECT_EQ(fit_tail(maxima.largest(), 100).level(kSamples), 6);
}

TEST(Tail, KeepsTheLargestInMemoryOfFixedSize) {
  SampleMaxima maxima;
  for (int i = 0; i < 10000; ++i) maxima.add(static_cast<float>(i * 7919 % 10007));
  ASSERT_EQ(maxima.largest().size(), kTailSamples + 1);
  EXPECT_TRUE(std::is_sorted(maxima.largest().rbegin(), maxima.largest().rend()));
  EXPECT_GE(maxima.largest()[0], 9990);
}

}  // namespace
}  // namespace sinter::convert
