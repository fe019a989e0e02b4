// What rounding did to a value, and the cause in words.
#include "converter/quantize/search/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sinter::convert {
namespace {

constexpr int64_t kRows = 2000;

// Returns the number that stands for x in integers of `p`.
double represented(const QuantParams& p, double x) {
  return static_cast<double>(p.quantize(x) - p.zero_point) * p.scale;
}

// Normal numbers, channel c times factors[c], rounded to int8 by these parameters.
ValueNoise rounded(const std::vector<double>& factors, const QuantParams& p, double outlier = 0,
                   double shift = 0) {
  std::mt19937 bits(5);
  std::normal_distribution<double> normal;
  std::vector<double> x, y;
  const auto channels = static_cast<int64_t>(factors.size());
  for (int64_t i = 0; i < kRows * channels; ++i) {
    x.push_back(normal(bits) * factors[static_cast<size_t>(i % channels)]);
    if (i == 7 && outlier > 0) x.back() = outlier;
    y.push_back(represented(p, x.back() + shift));
  }
  NoiseMeter meter(channels, p);
  meter.add(x, y);
  return meter.result();
}

TEST(Noise, IsThatOfUniformRounding) {
  const double scale = 8.0 / 255;
  const ValueNoise n = rounded({1, 1, 1, 1}, {DType::kInt8, scale, 0});
  EXPECT_EQ(n.all.elements, static_cast<uint64_t>(kRows * 4));
  EXPECT_NEAR(n.db(), 10 * std::log10(1 / (scale * scale / 12)), 0.3);
  EXPECT_EQ(n.levels(), 256);
  EXPECT_EQ(n.poor_channels(8), 0);
  EXPECT_EQ(cause_of(n), "");
  EXPECT_FALSE(n.scaled());
}

TEST(Noise, NamesChannelsWithFewLevels) {
  const ValueNoise n = rounded({1, 0.01, 1, 0.005}, {DType::kInt8, 8.0 / 255, 0});
  EXPECT_EQ(n.poor_channels(8), 2);
  EXPECT_EQ(n.worst_channel(), 3);
  EXPECT_EQ(cause_of(n), "2 of 4 channels use fewer than 8 levels");
}

TEST(Noise, NamesClippingOutliersAndShifts) {
  const ValueNoise clipped = rounded({1}, {DType::kInt8, 3.0 / 255, 0});
  EXPECT_GT(clipped.clipped_share(), 0.1);
  EXPECT_EQ(clipped.levels_used(), 256);  // never more than there are
  EXPECT_NE(cause_of(clipped).find("clipped 13 %"), std::string::npos) << cause_of(clipped);
  const ValueNoise outlier = rounded({1}, {DType::kInt8, 100.0 / 127, 0}, 100);
  EXPECT_NE(cause_of(outlier).find("times the typical value: outliers"), std::string::npos)
      << cause_of(outlier);
  const ValueNoise shifted = rounded({1, 1}, {DType::kInt8, 8.0 / 255, 0}, 0, 0.1);
  EXPECT_GT(shifted.offset_share(), 0.9);
  EXPECT_NE(cause_of(shifted).find("constant shift per channel"), std::string::npos) << cause_of(shifted);
}

TEST(Noise, DistinguishesAFactorPerChannelFromAnError) {
  std::vector<double> x, y;
  std::mt19937 bits(6);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 4000; ++i) {
    x.push_back(normal(bits));
    y.push_back(x.back() * (i % 2 ? 3 : 0.25) + 0.001 * normal(bits));
  }
  NoiseMeter meter(2);
  meter.add(x, y);
  EXPECT_LT(meter.result().db(), 0);
  EXPECT_GT(meter.result().fitted_db(), 40);
  EXPECT_TRUE(meter.result().scaled());
}

TEST(Noise, OfARescaledValueIsItsDistanceFromTheBestLine) {
  std::mt19937 bits(7);
  std::normal_distribution<double> normal;
  const double factors[] = {4, 0.5}, shifts[] = {-1, 0.25};
  const QuantParams p{DType::kInt8, 1.0 / 6, 5};
  std::vector<double> x, y;
  for (int i = 0; i < 8000; ++i) {
    x.push_back(normal(bits));
    y.push_back(represented(p, factors[i % 2] * x.back() + shifts[i % 2]));
  }
  NoiseMeter meter(2, p, true);
  EXPECT_FALSE(meter.certain());
  meter.add(x, y);
  ASSERT_TRUE(meter.certain());
  const ValueNoise n = meter.result();
  for (size_t c = 0; c < 2; ++c)
    EXPECT_NEAR(n.channels[c].db(), 10 * std::log10(12 * factors[c] * factors[c] / (p.scale * p.scale)), 0.3)
        << c;
  EXPECT_EQ(cause_of(n), "");
  EXPECT_GT(n.all.high, 10);  // as held
  std::vector<double> held = x;
  meter.rescale(held);
  EXPECT_NEAR(held[0], factors[0] * x[0] + shifts[0], 0.02);
  EXPECT_NEAR(held[1], factors[1] * x[1] + shifts[1], 0.02);
}

TEST(Noise, ListsNamesOfRoundedValues) {
  bool rescaled = false;
  EXPECT_EQ(exact_name("a.scaled.int8", &rescaled), "a");
  EXPECT_TRUE(rescaled);
  EXPECT_EQ(exact_name("a_QuantizeLinear_Output", &rescaled), "a");
  EXPECT_FALSE(rescaled);
  EXPECT_EQ(exact_name("a.int8.b"), "a.int8.b");
}

TEST(Noise, CountsWhatIsNotFiniteApart) {
  std::vector<double> x = {1, std::nan(""), INFINITY, 2}, y = {1, std::nan(""), 5, NAN};
  NoiseMeter meter(0);
  meter.add(x, y);
  EXPECT_EQ(meter.result().all.not_finite, 2u);
  EXPECT_EQ(meter.result().all.elements, 1u);
  EXPECT_EQ(meter.result().all.appeared, 1u);
  EXPECT_EQ(meter.result().db(), -999);
  EXPECT_EQ(cause_of(meter.result()),
            "1 element is NaN or infinite, and finite in the reference; 1 element is NaN or infinite in the "
            "reference, and a different number here");
  // Where the reference has no number, the other elements still count.
  NoiseMeter without(0);
  x.pop_back(), y.pop_back();
  without.add(x, y);
  EXPECT_EQ(without.result().db(), 999);
}

TEST(Noise, InfiniteNoiseIsNotANumberOfDecibels) {
  EXPECT_EQ(decibels(1, INFINITY), -999);
  EXPECT_EQ(decibels(1, std::nan("")), -999);
  EXPECT_EQ(decibels(1, 0), 999);
}

TEST(Noise, ReadsNarrowFloats) {
  std::vector<uint16_t> half = {0x3c00, 0x7c00, 0xfc00, 0x0001};
  TensorView v;
  v.dtype = DType::kFloat16;
  v.set_shape(std::vector<int64_t>{4});
  v.data = reinterpret_cast<std::byte*>(half.data());
  std::vector<double> numbers;
  read_numbers(v, std::nullopt, &numbers);
  EXPECT_EQ(numbers, (std::vector<double>{1, INFINITY, -INFINITY, 0x1p-24}));
  write_numbers(v, std::nullopt, {0.5, 1e9, -2, 0});
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3800, 0x7c00, 0xc000, 0}));
}

}  // namespace
}  // namespace sinter::convert
