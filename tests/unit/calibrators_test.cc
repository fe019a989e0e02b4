// Ranges from histograms, against quantizing the very values.
#include "converter/quantize/ranges/calibrators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace sinter::convert {
namespace {

struct Data {
  std::vector<float> values;
  TensorSummary summary;
  explicit Data(std::vector<float> x) : values(std::move(x)) {
    TensorStatistics s({0, 1 << 24});
    s.add(std::span<const float>(values));
    summary = s.summary();
  }
};

template <class Make>
Data draw(size_t n, Make&& make) {
  std::mt19937 bits(11);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(make(bits));
  return Data(std::move(x));
}
Data gaussian() {
  return draw(200000, [g = std::normal_distribution<double>(0.5, 2)](auto& b) mutable { return g(b); });
}
// A ReLU's result with a heavy tail.
Data heavy() {
  return draw(200000, [g = std::normal_distribution<double>()](auto& b) mutable {
    const double x = g(b);
    return x < 0 ? 0 : std::exp(3 * x) - 1;
  });
}
// As weights and activations without outliers often are.
Data laplace() {
  return draw(200000, [e = std::exponential_distribution<double>()](auto& b) mutable {
    const double x = e(b);
    return b() % 2 ? x : -x;
  });
}

// Mean square error of the values themselves.
double measured(const Data& d, const Range& range, const Levels& levels) {
  const QuantScale g = scale_of(range, levels);
  double sum = 0;
  for (const float x : d.values) {
    const double q = std::clamp(std::nearbyint(x / g.scale) + static_cast<double>(g.zero_point), 0.0,
                                static_cast<double>(levels.count - 1));
    const double e = (q - static_cast<double>(g.zero_point)) * g.scale - x;
    sum += e * e;
  }
  return sum / static_cast<double>(d.values.size());
}

TEST(Calibrators, ExpectedErrorIsTheErrorOfQuantizing) {
  for (const Data& d : {gaussian(), heavy(), laplace()})
    for (const Levels& levels : {kInt8Levels, Levels{255, true}, Levels{16, false}})
      for (const double share : {1.0, 0.5, 0.1, 0.02}) {
        const Range r{std::min<double>(d.summary.all.min, 0) * share, d.summary.all.max * share};
        const double expected = expected_error(d.summary.histogram, r, levels).total(),
                     exact = measured(d, r, levels);
        EXPECT_NEAR(expected, exact, 0.02 * exact) << share << " " << levels.count;
      }
}

TEST(Calibrators, ZeroIsALevelAndTheRangeIsCovered) {
  for (const Range& r : {Range{-1, 3}, Range{0, 6}, Range{-2, 0}, Range{-1e-9, 1e9}, Range{0, 0}}) {
    const QuantScale g = scale_of(r, kInt8Levels);
    EXPECT_GE(g.zero_point, 0);
    EXPECT_LE(g.zero_point, 255);
    EXPECT_GT(g.scale, 0);
    EXPECT_LE(g.low, r.low + g.scale / 2 + 1e-12);
    EXPECT_GE(g.high, r.high - g.scale / 2 - 1e-12);
  }
  const QuantScale s = scale_of({-1, 3}, kInt16Levels);
  EXPECT_EQ(s.zero_point, 32767);
  EXPECT_DOUBLE_EQ(s.high, 3);
  EXPECT_DOUBLE_EQ(s.low, -3);
}

TEST(Calibrators, EachRuleDoesWhatItsNameStates) {
  Data d = gaussian();
  const auto range = [&](Calibrator rule, double p = 99.9) {
    return propose_range(d.summary, rule, p, kInt8Levels);
  };
  std::vector<float> x = d.values;
  std::sort(x.begin(), x.end());
  EXPECT_EQ(range(Calibrator::kMinMax), (Range{x.front(), x.back()}));
  const auto at = [&](double f) { return x[static_cast<size_t>(f * static_cast<double>(x.size()))]; };
  EXPECT_NEAR(range(Calibrator::kPercentile).low, at(0.0005), 0.15);
  EXPECT_NEAR(range(Calibrator::kPercentile).high, at(0.9995), 0.15);
  // Mean square: no range on the same line is better, by more than its own resolution.
  const double least = expected_error(d.summary.histogram, range(Calibrator::kMse), kInt8Levels).total();
  for (double share = 1; share > 0.05; share *= 0.98)
    EXPECT_LE(least, 1.01 * measured(d, {x.front() * share, x.back() * share}, kInt8Levels)) << share;
}

TEST(Calibrators, MovingAverageIsTheMeanOfTheSamplesExtremes) {
  TensorStatistics s;
  for (const float top : {2.0f, 4.0f}) s.add(std::span<const float>(std::vector<float>{-1, top}));
  EXPECT_EQ(propose_range(s.summary(), Calibrator::kMovingAverage, 0, kInt8Levels), (Range{-1, 3}));
}

TEST(Calibrators, EntropyCutsAFarOutlierAndKeepsEvenValues) {
  std::uniform_real_distribution<double> even(-1, 1);
  Data flat = draw(100000, [&](auto& b) { return even(b); });
  const Range kept = propose_range(flat.summary, Calibrator::kEntropy, 0, kInt8Levels);
  EXPECT_LT(kept.low, -0.9);
  EXPECT_GT(kept.high, 0.9);
  std::vector<float> x = flat.values;
  x.push_back(6);
  const Range cut = propose_range(Data(x).summary, Calibrator::kEntropy, 0, kInt8Levels);
  EXPECT_LT(cut.high, 3);
  EXPECT_GT(cut.high, 0.9);
}

TEST(Calibrators, BestIsNotWorseThanAnyRule) {
  for (const Data& d : {gaussian(), heavy(), laplace()})
    for (const Levels& levels : {kInt8Levels, Levels{16, false}}) {
      const ChosenRange best = choose_range(d.summary, {}, levels);
      for (const Calibrator rule : kCalibrators) {
        CalibratorOptions options;
        options.rule = rule;
        const ChosenRange other = choose_range(d.summary, options, levels);
        EXPECT_LE(best.error.total(), 1.0102 * other.error.total()) << calibrator_name(rule);
        EXPECT_LE(measured(d, best.range, levels), 1.05 * measured(d, other.range, levels))
            << calibrator_name(rule);
      }
    }
}

TEST(Calibrators, BestGainsWhereTheTailIsLong) {
  const Data d = laplace();
  CalibratorOptions whole;
  whole.rule = Calibrator::kMinMax;
  const auto gain = [&](const Levels& levels) {
    return choose_range(d.summary, {}, levels).error.sqnr_db() -
           choose_range(d.summary, whole, levels).error.sqnr_db();
  };
  EXPECT_GT(gain(kInt8Levels), 0.5);
  EXPECT_GT(gain({16, false}), 4);
}

TEST(Calibrators, AHeavierClippingClipsLess) {
  const Data d = laplace();
  CalibratorOptions careful;
  careful.clipping_weight = 8;
  const ChosenRange a = choose_range(d.summary, {}, kInt8Levels),
                    b = choose_range(d.summary, careful, kInt8Levels);
  EXPECT_LT(b.error.clipping, a.error.clipping);
  EXPECT_GT(b.range.high, a.range.high);
}

TEST(Calibrators, DegenerateTensorsHaveRanges) {
  for (const std::vector<float>& x :
       {std::vector<float>(10, 0.0f), std::vector<float>(10, 3.0f), std::vector<float>{-2},
        std::vector<float>{1e-40f}, std::vector<float>{}}) {
    const Data d{x};
    for (const Calibrator rule : kCalibrators) {
      CalibratorOptions options;
      options.rule = rule;
      const ChosenRange c = choose_range(d.summary, options);
      EXPECT_LE(c.range.low, 0);
      EXPECT_GE(c.range.high, 0);
      EXPECT_TRUE(std::isfinite(c.error.total()));
    }
  }
  // One value is exact: it is the end of the range.
  EXPECT_LT(choose_range(Data{std::vector<float>(10, 3.0f)}.summary, {}).error.total(), 1e-12);
}

TEST(Calibrators, NamesAreRead) {
  EXPECT_EQ(parse_calibrator("best")->rule, Calibrator::kBest);
  EXPECT_EQ(parse_calibrator("moving-average")->rule, Calibrator::kMovingAverage);
  EXPECT_EQ(parse_calibrator("percentile")->percentile, 99.99);
  EXPECT_EQ(parse_calibrator("percentile=99.9")->percentile, 99.9);
  for (const char* bad : {"", "Best", "percentile=", "percentile=101", "percentile=9x", "mse=3"})
    EXPECT_FALSE(parse_calibrator(bad)) << bad;
}

}  // namespace
}  // namespace sinter::convert
