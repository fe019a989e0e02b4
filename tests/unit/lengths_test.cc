// Lengths: what is proven of expressions, and that equal ones are one.
#include "converter/import/lengths/lengths.h"

#include <gtest/gtest.h>

#include <limits>

#include "converter/import/lower.h"

namespace sinter::convert {
namespace {

class LengthsTest : public ::testing::Test {
 protected:
  LengthId number(int64_t x) { return lengths.constant(x); }
  LengthId unknown(int64_t low, int64_t high) {
    return lengths.symbol(graph.add_value({}, DType::kInt64, {}), {low, high});
  }

  Graph graph;
  ImportedModel model;
  LoweringOptions options;
  Diagnostics diagnostics;
  GraphLowering lowering{graph, model, options, diagnostics};
  Lengths& lengths = lowering.lengths();
};

TEST_F(LengthsTest, EqualExpressionsAreOne) {
  const LengthId n = unknown(0, 9), m = unknown(0, 9);
  EXPECT_NE(n, m);
  EXPECT_EQ(lengths.add(n, m), lengths.add(m, n));
  EXPECT_EQ(lengths.mul(number(4), n), lengths.mul(n, number(4)));
  EXPECT_EQ(lengths.div(lengths.mul(n, number(4)), number(4)), n);
  EXPECT_EQ(lengths.div(lengths.mul(n, number(12)), number(4)), lengths.mul(n, number(3)));
  EXPECT_EQ(lengths.mul(lengths.mul(n, number(2)), number(3)), lengths.mul(n, number(6)));
  EXPECT_EQ(lengths.mul(lengths.mul(n, number(2)), m), lengths.mul(lengths.mul(m, n), number(2)));
  EXPECT_EQ(lengths.sub(lengths.add(n, number(3)), n), number(3));
  EXPECT_EQ(lengths.add(lengths.add(n, number(3)), number(-3)), n);
  EXPECT_EQ(lengths.sub(lengths.add(n, m), m), n);
  EXPECT_EQ(lengths.min(lengths.min(n, number(7)), number(5)), lengths.min(n, number(5)));
}

TEST_F(LengthsTest, RangesDecide) {
  const LengthId n = unknown(2, 9);
  EXPECT_EQ(lengths.min(n, number(9)), n);
  EXPECT_EQ(lengths.max(n, number(2)), n);
  EXPECT_EQ(lengths.known(lengths.combine(LengthFn::kLess, n, number(2))), 0);
  EXPECT_EQ(lengths.known(lengths.combine(LengthFn::kLess, n, number(10))), 1);
  EXPECT_EQ(lengths.known(lengths.combine(LengthFn::kEqual, n, number(1))), 0);
  EXPECT_EQ(lengths.known(lengths.combine(LengthFn::kEqual, n, number(5))), std::nullopt);
  EXPECT_EQ(lengths.high(lengths.div(lengths.add(n, number(1)), number(2))), 5);
  EXPECT_EQ(lengths.high(lengths.combine(LengthFn::kMod, n, number(4))), 3);
  EXPECT_EQ(lengths.high(lengths.sub(number(9), n)), 7);
  EXPECT_TRUE(lengths.never_above(lengths.min(number(3), n), n));
  EXPECT_TRUE(lengths.never_above(n, number(9)));
  EXPECT_FALSE(lengths.never_above(number(3), n));
}

// Ends beyond int64 stay at its ends, and do not wrap into a proof.
TEST_F(LengthsTest, RangesSaturate) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const LengthId n = unknown(0, most);
  EXPECT_EQ(lengths.high(lengths.add(n, number(5))), most);
  EXPECT_EQ(lengths.high(lengths.mul(n, number(5))), most);
  EXPECT_EQ(lengths.range(lengths.sub(number(0), n)).low, -most);
  EXPECT_EQ(lengths.known(lengths.combine(LengthFn::kLess, lengths.add(n, number(5)), n)), std::nullopt);
}

TEST_F(LengthsTest, ElementsOfShapeArithmeticAreFollowed) {
  const LengthId n = unknown(0, 9);
  const ValueId shape = lengths.vector({n, number(4)});
  std::vector<ValueId> out;
  ASSERT_TRUE(
      lowering.builder().emit(SliceAttrs{IntList{1}, IntList{-1}, IntList{2}}, {shape}, 1, &out).ok());
  EXPECT_EQ(lengths.items(out[0]), (std::vector<LengthId>{number(4), n}));
  EXPECT_EQ(lengths.known_items(out[0]), std::nullopt);
  const ValueId two = graph.add_constant(Constant::scalar_int(DType::kInt64, 2));
  ASSERT_TRUE(lowering.builder().emit(MulAttrs{}, {out[0], two}, 1, &out).ok());
  EXPECT_EQ(lengths.items(out[0]), (std::vector<LengthId>{number(8), lengths.mul(n, number(2))}));
}

}  // namespace
}  // namespace sinter::convert
