// Which samples choose and which judge, what is kept of either, and how sure the judges are.
#include "converter/quantize/samples/sample_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "converter/quantize/search/output_trials.h"

namespace sinter::convert {
namespace {

Sample numbered(int64_t n) {
  return {Constant::of<float>(DType::kFloat32, {1}, std::vector<float>{static_cast<float>(n)})};
}
int64_t number_of(const Sample& sample) { return static_cast<int64_t>(sample.at(0)->as_doubles().at(0)); }

std::vector<int64_t> kept_of(size_t most, int64_t total, int64_t offered) {
  KeptSamples kept(most, total);
  for (int64_t n = 0; n < offered; ++n) kept.offer(numbered(n));
  std::vector<int64_t> numbers;
  for (const Sample& s : kept.take()) numbers.push_back(number_of(s));
  return numbers;
}

class Numbers final : public SampleSource {
 public:
  Numbers(int64_t total, bool stream) : total_(total), stream_(stream) {}
  int64_t count() const override { return stream_ ? -1 : total_; }
  bool next(Sample* sample) override {
    if (at_ == total_) return false;
    *sample = numbered(at_++);
    return true;
  }
  void rewind() override { at_ = 0; }
  bool is_file() const override { return !stream_; }

 private:
  int64_t total_, at_ = 0;
  const bool stream_;
};

TEST(KeptSamples, AStreamKeepsWholeSamplesHoweverManyCome) {
  for (const size_t most : {4, 5, 13, 14, 64})
    for (int64_t offered = 1; offered < 200; ++offered) {
      const std::vector<int64_t> kept = kept_of(most, -1, offered);
      ASSERT_LE(kept.size(), most);
      ASSERT_GE(kept.size() * 2 + 1, std::min<size_t>(most, static_cast<size_t>(offered)));
      for (size_t i = 0; i < kept.size(); ++i) {
        // Evenly spread from the first one on; number_of() throws where a sample was lost.
        const int64_t stride = kept.size() > 1 ? kept[1] : 1;
        ASSERT_EQ(kept[i], static_cast<int64_t>(i) * stride) << most << " of " << offered;
      }
    }
}

TEST(KeptSamples, OfAKnownNumberAsManyAsMayBe) {
  EXPECT_EQ(kept_of(3, 3, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(kept_of(5, 10, 10).size(), 5u);
  EXPECT_EQ(kept_of(7, 1000, 1000).size(), 7u);
  EXPECT_GT(kept_of(7, 1000, 1000).back(), 800);
}

TEST(SampleSplit, OneOfFiveJudges) {
  for (int64_t count = 0; count < 5; ++count) EXPECT_EQ(SampleSplit(count).judges(), 0);
  for (int64_t count = 5; count < 1500; ++count) {
    const SampleSplit split(count);
    int64_t judges = 0;
    for (int64_t n = 0; n < count; ++n) judges += split.judges(n);
    ASSERT_EQ(judges, split.judges());
    ASSERT_LE(judges, std::min<int64_t>(count / 5, 128));
    ASSERT_GE(judges, std::min<int64_t>(count / 5, 128) * 4 / 5);
  }
  int64_t judges = 0;
  for (int64_t n = 0; n < 1000; ++n) judges += SampleSplit(-1).judges(n);
  EXPECT_NEAR(static_cast<double>(judges), 200, 10);
}

TEST(SampleSplit, NeighboursJudgeTogether) {
  const SampleSplit split(200);
  int64_t runs = 0;
  for (int64_t n = 1; n < 200; ++n) runs += split.judges(n) && !split.judges(n - 1);
  EXPECT_LE(runs, 5);
}

TEST(SampleSplit, JudgesAreSpreadOverTheData) {
  const SampleSplit split(1000);
  for (int64_t fifth = 0; fifth < 5; ++fifth) {
    int64_t judges = 0;
    for (int64_t n = 0; n < 200; ++n) judges += split.judges(200 * fifth + n);
    EXPECT_EQ(judges, 25);
  }
}

TEST(ChoosingSamples, JudgesAreKeptApartInEveryPass) {
  for (const bool stream : {false, true})
    for (const int64_t total : {1, 4, 5, 12, 33, 200}) {
      Numbers numbers(total, stream);
      ChoosingSamples choosing(numbers, 16);
      std::set<int64_t> first, again;
      for (Sample s; choosing.next(&s);) first.insert(number_of(s));
      std::set<int64_t> judges;
      for (const Sample& s : choosing.take_judging()) judges.insert(number_of(s));
      for (const Sample& s : choosing.take_choosing()) EXPECT_TRUE(first.contains(number_of(s)));
      choosing.rewind();
      for (Sample s; choosing.next(&s);) again.insert(number_of(s));
      EXPECT_EQ(first, again);
      for (const int64_t n : judges) EXPECT_FALSE(first.contains(n)) << n;
      EXPECT_EQ(judges.empty(), total < 5 || (stream && total < 14)) << total << stream;
      EXPECT_FALSE(first.empty());
      EXPECT_EQ(choosing.count(), stream ? -1 : static_cast<int64_t>(first.size()));
    }
}

TEST(SqnrInterval, HoldsTheRatioAndNarrowsWithTheSamples) {
  // Noise of -20 dB, by a factor of two up and down.
  const auto of = [](size_t n) {
    std::vector<double> signal(n, 1), noise(n);
    for (size_t i = 0; i < n; ++i) noise[i] = i % 2 == 0 ? 0.005 : 0.015;
    return sqnr_interval(signal, noise);
  };
  EXPECT_FALSE(of(1).has_value());
  double width = 1000;
  for (const size_t n : {2, 4, 16, 64, 256}) {
    const auto interval = of(n);
    ASSERT_TRUE(interval.has_value());
    EXPECT_LT(interval->low, 20);
    EXPECT_GT(interval->high, 20);
    EXPECT_LT(interval->high - interval->low, width);
    width = interval->high - interval->low;
  }
  // The mean of 256 such noises is known to 0.5 / 16 of itself: 0.14 dB, 1.97 times. Three of 50 times the
  // mean more among noise of 2.56 are 2.00 dB.
  EXPECT_NEAR(of(256)->high - 20, 0.27, 0.02);
  EXPECT_NEAR(20 - of(256)->low, 2.00, 0.02);
  // One loud sample may not have been the loudest there is.
  std::vector<double> signal(25, 1), noise(25, 1e-5);
  noise[7] = 1e-2;
  EXPECT_LT(sqnr_interval(signal, noise)->low, 34 - 10);
  const double none[] = {0, 0, 0}, some[] = {1, 1, 1};
  EXPECT_FALSE(sqnr_interval(some, none).has_value());
}

TEST(SqnrInterval, HoldsWhereOneSampleInFiveHundredIsLoud) {
  std::mt19937 random(2);
  std::normal_distribution<double> logarithm(0, 0.5);
  std::bernoulli_distribution leaves(0.002);
  // 1500 times the noise: four times the noise of all others together.
  const double truth = -10 * std::log10(std::exp(0.125) * (0.998 + 0.002 * 1500));
  int held = 0;
  constexpr int kDraws = 2000;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::vector<double> signal(40, 1);
    std::vector<double> noise;
    for (int i = 0; i < 40; ++i) noise.push_back(std::exp(logarithm(random)) * (leaves(random) ? 1500 : 1));
    const auto interval = sqnr_interval(signal, noise);
    held += interval->low <= truth && truth <= interval->high;
  }
  EXPECT_GE(held, kDraws * 90 / 100);
}

TEST(SampleSqnr, OrdersSamplesByTheirOwnRatio) {
  const double signal[] = {1, 100, 0, 10, 1}, noise[] = {0.1, 0.1, 0.1, 0.1, 0};
  const auto of = [&](size_t n) { return *sample_sqnr(std::span(signal, n), std::span(noise, n)); };
  EXPECT_NEAR(of(2).median, 20, 1e-9);
  EXPECT_NEAR(of(2).worst, 10, 1e-9);
  EXPECT_NEAR(of(5).median, 20, 1e-9);  // -999, 10, 20, 30, 999
  EXPECT_EQ(of(5).worst, -999);
  EXPECT_FALSE(sample_sqnr({}, {}).has_value());
}

// Noise whose logarithm has a normal distribution: the networks of tests/quantize/nets have deviations of 0.1
// (unet) to 1.5 (columns), ResNet8 on photographs has 2.3.
TEST(SqnrInterval, HoldsNinetyFivePercentOfDraws) {
  std::mt19937 random(1);
  for (const double deviation : {0.3, 0.9, 1.5, 2.3})
    for (const size_t n : {10, 25, 64}) {
      std::normal_distribution<double> logarithm(0, deviation);
      const double truth = -10 * std::log10(std::exp(deviation * deviation / 2));
      constexpr int kDraws = 4000;
      int held = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        const std::vector<double> signal(n, 1);
        std::vector<double> noise;
        for (size_t i = 0; i < n; ++i) noise.push_back(std::exp(logarithm(random)));
        const auto interval = sqnr_interval(signal, noise);
        ASSERT_TRUE(interval.has_value());
        held += interval->low <= truth && truth <= interval->high;
      }
      EXPECT_GE(held, kDraws * 95 / 100) << deviation << " of " << n << " samples";
    }
}

}  // namespace
}  // namespace sinter::convert
