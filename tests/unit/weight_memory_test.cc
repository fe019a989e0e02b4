// What is remembered is what the constant gives, for as long as it lives and within the bytes that there are.
#include "converter/ir/weight_memory.h"

#include <gtest/gtest.h>

#include "converter/ir/integer_weights.h"

namespace sinter::convert {
namespace {

struct Sum {
  static constexpr int kKind = 100;
  double sum = 0;
  size_t size = 8;
  size_t bytes() const { return size; }
};

ConstantPtr constant(float first) {
  const std::vector<float> items = {first, 2, 3};
  return Constant::of<float>(DType::kFloat32, {3}, items);
}

// How often a sum was made.
struct Sums {
  int made = 0;
  double of(const ConstantPtr& c, size_t bytes = 8) {
    return WeightMemory::of<Sum>(c, 0,
                                 [&] {
                                   ++made;
                                   double sum = 0;
                                   for (const double x : c->as_doubles()) sum += x;
                                   return Sum{sum, bytes};
                                 })
        ->sum;
  }
};

TEST(WeightMemory, RemembersWhileItLives) {
  Sums sums;
  const ConstantPtr a = constant(1);
  EXPECT_EQ(sums.of(a), 6);
  EXPECT_EQ(sums.of(a), 6);
  EXPECT_EQ(sums.made, 2);
  {
    const WeightMemory memory;
    EXPECT_EQ(sums.of(a), 6);
    EXPECT_EQ(sums.of(a), 6);
    EXPECT_EQ(sums.made, 3);
  }
  EXPECT_EQ(sums.of(a), 6);
  EXPECT_EQ(sums.made, 4);
}

TEST(WeightMemory, DistinguishesConstantsInTheSamePlace) {
  const WeightMemory memory;
  Sums sums;
  for (int i = 0; i < 100; ++i) {
    const ConstantPtr c = constant(static_cast<float>(i));
    EXPECT_EQ(sums.of(c), 5 + i);
  }
  EXPECT_EQ(sums.made, 100);
}

TEST(WeightMemory, ForgetsWhatWasNotAskedForLongest) {
  const WeightMemory memory(100);
  Sums sums;
  const ConstantPtr a = constant(1), b = constant(2), c = constant(3), huge = constant(4);
  sums.of(a, 40), sums.of(b, 40), sums.of(a, 40);
  EXPECT_EQ(sums.made, 2);
  sums.of(c, 40);  // b goes
  sums.of(a, 40);
  EXPECT_EQ(sums.made, 3);
  sums.of(b, 40);
  EXPECT_EQ(sums.made, 4);
  sums.of(huge, 101), sums.of(huge, 101);
  EXPECT_EQ(sums.made, 6);
  sums.of(b, 40);
  EXPECT_EQ(sums.made, 6);
}

TEST(WeightMemory, RoundedWeightsAreTheSame) {
  std::vector<float> items(96);
  for (size_t i = 0; i < items.size(); ++i) items[i] = std::sin(static_cast<float>(i) * 12.9898f);
  const ConstantPtr c = Constant::of<float>(DType::kFloat32, {8, 12}, items);
  const std::vector<double> coarse(8, 0.05);
  for (const int64_t axis : {0, 1}) {
    const std::vector<double> least = axis == 0 ? coarse : std::vector<double>();
    const std::vector<double> fresh = in_steps(c, axis)->as_doubles(),
                              fresh_coarse = in_steps(c, axis, least)->as_doubles();
    const WeightMemory memory;
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(in_steps(c, axis)->as_doubles(), fresh);
      EXPECT_EQ(in_steps(c, axis, least)->as_doubles(), fresh_coarse);
    }
    EXPECT_EQ(in_steps(c, axis), in_steps(c, axis));
    const ConstantPtr rounded = in_steps(c, axis);
    const auto w = integer_weights(rounded, axis);
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w, integer_weights(rounded, axis));
    const Channels channels(c->dims(), axis);
    std::vector<double> magnitudes(channels.count(), 0);
    const std::vector<int64_t> q = w->q->as_int64s();
    for (size_t i = 0; i < q.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(q[i]) * w->scales[channels.of(i)], fresh[i], 1e-6);
      magnitudes[channels.of(i)] += static_cast<double>(std::abs(q[i]));
    }
    EXPECT_EQ(w->magnitudes, magnitudes);
    EXPECT_TRUE(w->zeros.empty());
    EXPECT_FALSE(w->wide);
  }
}

}  // namespace
}  // namespace sinter::convert
