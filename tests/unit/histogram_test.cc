// What TensorStatistics keeps, against the same numbers computed from all values at once.
#include "converter/quantize/ranges/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace sinter::convert {
namespace {

std::vector<float> normal(size_t n, unsigned seed, float scale = 1) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> gauss(0, scale);
  std::vector<float> x(n);
  for (float& v : x) v = gauss(bits);
  return x;
}

TensorSummary summary_of(const std::vector<float>& x, TensorStatistics::Options options = {}) {
  TensorStatistics s(options);
  s.add(std::span<const float>(x));
  return s.summary();
}

TEST(Histogram, ExtremesAndSumsAreThoseOfAllElements) {
  for (const int64_t channels : {1, 2, 3, 10, 16, 17, 24, 96, 1001}) {
    for (const int64_t rows : {1, 5, 33, 1200}) {
      TensorStatistics s({channels, 64});
      std::vector<double> sum(static_cast<size_t>(channels));
      std::vector<float> low(sum.size(), 1e30f), high(sum.size(), -1e30f);
      double magnitude = 0;
      for (unsigned sample = 0; sample < 3; ++sample) {
        const auto x = normal(static_cast<size_t>(channels * rows), 7 * sample + 1);
        s.add(std::span<const float>(x));
        for (size_t i = 0; i < x.size(); ++i) {
          const size_t c = i % sum.size();
          sum[c] += x[i], low[c] = std::min(low[c], x[i]), high[c] = std::max(high[c], x[i]);
          magnitude = std::max(magnitude, std::fabs(sum[c]));
        }
      }
      const TensorSummary t = s.summary();
      EXPECT_EQ(t.elements, static_cast<uint64_t>(3 * channels * rows));
      EXPECT_EQ(t.channel_elements, static_cast<uint64_t>(3 * rows));
      ASSERT_EQ(t.channels.size(), sum.size());
      for (size_t c = 0; c < sum.size(); ++c) {
        EXPECT_EQ(t.channels[c].min, low[c]) << channels << " " << rows << " " << c;
        EXPECT_EQ(t.channels[c].max, high[c]) << channels << " " << rows << " " << c;
        EXPECT_NEAR(t.channels[c].sum, sum[c], 1e-4 * std::max(1.0, magnitude));
      }
      EXPECT_EQ(t.all.min, *std::min_element(low.begin(), low.end()));
      EXPECT_EQ(t.all.max, *std::max_element(high.begin(), high.end()));
    }
  }
}

TEST(Histogram, EveryElementIsCountedInTheBinThatHoldsIt) {
  std::vector<float> x = normal(5000, 3);
  for (size_t i = 0; i < 1000; ++i) x[i] = 0;
  x[1000] = -0.0f, x[1001] = 1e-3f, x[1002] = 1e20f, x[1003] = -3e-20f;
  const Histogram h = summary_of(x).histogram;
  EXPECT_EQ(h.total, x.size());
  uint64_t total = 0;
  double before = -1e30;
  for (const Histogram::Bin& bin : h.bins) {
    EXPECT_GE(bin.low, before);
    EXPECT_LE(bin.low, bin.high);
    // Bins are closed on the side of zero.
    uint64_t inside = 0;
    for (const float v : x)
      inside += v == 0 ? bin.low == 0 && bin.high == 0
                       : (v > 0 ? (v >= bin.low && bin.high > 0 && (v < bin.high || bin.high == 1e20f))
                                : (v <= bin.high && bin.low < 0 && (v > bin.low || v == bin.low)));
    EXPECT_GE(inside, bin.count);
    if (bin.low > 0) {
      EXPECT_LE(bin.high / bin.low, 1.0 + 1.0 / kBinsPerOctave);
    }
    total += bin.count;
    before = bin.high;
  }
  EXPECT_EQ(total, h.total);
  const auto zero =
      std::find_if(h.bins.begin(), h.bins.end(), [](const auto& b) { return b.low == 0 && b.high == 0; });
  ASSERT_NE(zero, h.bins.end());
  EXPECT_EQ(zero->count, 1001u);
}

TEST(Histogram, QuantilesAgreeWithSortedValues) {
  std::vector<float> x = normal(16000, 5, 3);
  const Histogram h = summary_of(x).histogram;
  std::sort(x.begin(), x.end());
  for (const double f : {0.001, 0.01, 0.1, 0.3, 0.7, 0.9, 0.99, 0.999}) {
    const double exact = x[static_cast<size_t>(f * static_cast<double>(x.size()))];
    EXPECT_NEAR(h.quantile(f), exact, std::fabs(exact) / 32) << f;
  }
  EXPECT_EQ(h.quantile(0), x.front());
  EXPECT_EQ(h.quantile(1), x.back());
}

TEST(Histogram, OutliersAfterwardsLoseNothing) {
  TensorStatistics s;
  s.add(std::span<const float>(normal(8000, 1, 1e-6f)));
  const double before = s.summary().histogram.quantile(0.9);
  s.add(std::span<const float>(std::vector<float>{1e9f}));
  const TensorSummary t = s.summary();
  EXPECT_EQ(t.all.max, 1e9f);
  EXPECT_NEAR(t.histogram.quantile(0.9), before, before * 0.01);
}

TEST(Histogram, APartOfALargeTensorStandsForAll) {
  // Channels of unlike sizes, so that a step that always met the same ones would show.
  constexpr size_t kChannels = 64;
  TensorStatistics s({0, 4096});
  std::vector<float> all;
  for (unsigned sample = 0; sample < 24; ++sample) {
    auto x = normal(kChannels * 2000, sample);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= static_cast<float>(1 + i % kChannels);
    s.add(std::span<const float>(x));
    all.insert(all.end(), x.begin(), x.end());
  }
  const TensorSummary t = s.summary();
  EXPECT_LE(t.histogram.total, 24u * 4096u);
  EXPECT_GE(t.histogram.total, 23u * 4096u);
  double square = 0;
  for (const float v : all) square += static_cast<double>(v) * v;
  square /= static_cast<double>(all.size());
  EXPECT_NEAR(t.histogram.mean_square(), square, 0.03 * square);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(t.all.max, all.back());
  for (const double f : {0.01, 0.2, 0.8, 0.99}) {
    const double exact = all[static_cast<size_t>(f * static_cast<double>(all.size()))];
    EXPECT_NEAR(t.histogram.quantile(f), exact, 0.05 * std::fabs(exact)) << f;
  }
}

TEST(Histogram, TheSameSamplesGiveTheSameNumbers) {
  const auto run = [] {
    TensorStatistics s({8, 128});
    for (unsigned i = 0; i < 5; ++i) s.add(std::span<const float>(normal(80000, i)));
    return s.summary();
  };
  const TensorSummary a = run(), b = run();
  EXPECT_EQ(a.all.sum, b.all.sum);
  ASSERT_EQ(a.histogram.bins.size(), b.histogram.bins.size());
  for (size_t i = 0; i < a.histogram.bins.size(); ++i)
    EXPECT_EQ(a.histogram.bins[i].count, b.histogram.bins[i].count);
}

TEST(Histogram, WhatIsNotFiniteIsCountedApart) {
  std::vector<float> x = normal(999, 2);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  x[500] = std::numeric_limits<float>::infinity();
  x[998] = -std::numeric_limits<float>::infinity();
  const TensorSummary t = summary_of(x, {3, 1 << 14});
  EXPECT_EQ(t.not_finite, 3u);
  EXPECT_EQ(t.elements, 996u);
  EXPECT_EQ(t.histogram.total, 996u);
  EXPECT_LT(t.all.max, 10);
  EXPECT_TRUE(std::isfinite(t.all.sum));
  const TensorSummary none = summary_of({std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(none.elements, 0u);
  EXPECT_TRUE(none.histogram.bins.empty());
}

TEST(Histogram, AveragesOfExtremesAreMeansOverSamples) {
  TensorStatistics s;
  for (const float top : {1.0f, 2.0f, 6.0f})
    s.add(std::span<const float>(std::vector<float>{-top, 0, 2 * top}));
  EXPECT_FLOAT_EQ(s.summary().average_min, -3);
  EXPECT_FLOAT_EQ(s.summary().average_max, 6);
}

TEST(Histogram, Float64IsTakenAsFloat32) {
  TensorStatistics s;
  s.add(std::span<const double>(std::vector<double>{0.1, -2, 1e300}));
  const TensorSummary t = s.summary();
  EXPECT_EQ(t.all.max, 0.1f);
  EXPECT_EQ(t.not_finite, 1u);
}

}  // namespace
}  // namespace sinter::convert
