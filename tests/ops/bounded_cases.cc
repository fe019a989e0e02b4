// NonZero, Nms, Unique, CheckLength.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/core/op_enums.h"
#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

TEST(NonZero, ListsIndexTuples) {
  const auto y = run_op(NonZeroAttrs{}, {tensor<float>({2, 2}, {1, -0.0f, 0, -3})});
  expect_equal(y[0], tensor<int64_t>({2, 4}, {0, 1, 0, 0, 0, 1, 0, 0}));
  expect_equal(y[1], tensor<int64_t>({}, {2}));
  const auto b = run_op(NonZeroAttrs{}, {tensor<bool>({3}, {false, true, true})});
  expect_equal(b[0], tensor<int64_t>({1, 3}, {1, 2, 0}));
  const auto h =
      run_op(NonZeroAttrs{}, {bits_tensor<uint16_t>(DType::kFloat16, {3}, {0x8000, 0x0001, 0x7e00})});
  expect_equal(h[0], tensor<int64_t>({1, 3}, {1, 2, 0}));
  expect_equal(run_op(NonZeroAttrs{}, {tensor<uint8_t>({2}, {128, 0})})[1], tensor<int64_t>({}, {1}));
  expect_equal(run_op(NonZeroAttrs{}, {iota<float>({0, 3})})[0], iota<int64_t>({2, 0}));
  const auto s = run_op(NonZeroAttrs{}, {tensor<int32_t>({}, {5})});
  expect_equal(s[0], iota<int64_t>({0, 1}));
  expect_equal(s[1], tensor<int64_t>({}, {1}));
}

const Tensor kBoxes = tensor<float>(
    {1, 6, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101});
const Tensor kScores = tensor<float>({1, 1, 6}, {0.9, 0.75, 0.6, 0.95, 0.5, 0.3});
const Tensor kHalf = tensor<float>({}, {0.5}), kNone = tensor<float>({1}, {0});

TEST(Nms, KeepsTheBestBoxes) {
  const auto y = run_op(NmsAttrs{.max_per_class = 4}, {kBoxes, kScores, kHalf, kNone});
  expect_equal(y[0], tensor<int64_t>({4, 3}, {0, 0, 3, 0, 0, 0, 0, 0, 5, 0, 0, 0}));
  expect_equal(y[1], tensor<int64_t>({}, {3}));
  expect_equal(run_op(NmsAttrs{.max_per_class = 2}, {kBoxes, kScores, kHalf})[0],
               tensor<int64_t>({2, 3}, {0, 0, 3, 0, 0, 0}));
  // Strictly above the score threshold.
  expect_equal(run_op(NmsAttrs{.max_per_class = 3}, {kBoxes, kScores, kHalf, tensor<float>({}, {0.9f})})[1],
               tensor<int64_t>({}, {1}));
  // No threshold given: any overlap suppresses.
  expect_equal(run_op(NmsAttrs{.max_per_class = 9}, {kBoxes, kScores})[1], tensor<int64_t>({}, {3}));
  const auto none = run_op(NmsAttrs{}, {kBoxes, kScores, kHalf});
  expect_equal(none[0], iota<int64_t>({0, 3}));
  expect_equal(none[1], tensor<int64_t>({}, {0}));
  expect_equal(run_op(NmsAttrs{.max_per_class = -3}, {kBoxes, kScores})[1], tensor<int64_t>({}, {0}));
}

// Corners in either order; centre and size.
TEST(Nms, ReadsBothFormats) {
  const Tensor flipped = tensor<float>({1, 3, 4}, {1, 1, 0, 0, 0, 0.1, 1, 1.1, 5, 5, 4, 4}),
               scores = tensor<float>({1, 1, 3}, {0.5, 0.9, 0.1});
  expect_equal(run_op(NmsAttrs{.max_per_class = 3}, {flipped, scores, kHalf})[0],
               tensor<int64_t>({3, 3}, {0, 0, 1, 0, 0, 2, 0, 0, 0}));
  const Tensor centred = tensor<float>({1, 3, 4}, {0.5, 0.5, 1, 1, 0.5, 0.6, 1, 1, 9, 9, 1, 1});
  expect_equal(run_op(NmsAttrs{.max_per_class = 3, .center_point_box = 1}, {centred, scores, kHalf})[0],
               tensor<int64_t>({3, 3}, {0, 0, 1, 0, 0, 2, 0, 0, 0}));
}

TEST(Nms, KeepsClassesAndBatchesApart) {
  const Tensor boxes = tensor<double>({2, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6});
  const Tensor scores = tensor<double>(
      {2, 2, 2}, {0.5, 0.5, 0.1, 0.2, 0.7, 0.7, 0.3, std::numeric_limits<double>::quiet_NaN()});
  const auto y = run_op(NmsAttrs{.max_per_class = 2}, {boxes, scores, kHalf});
  // Equal scores: the lower index first. A NaN is never kept.
  expect_equal(y[0], tensor<int64_t>(
                         {8, 3}, {0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  expect_equal(y[1], tensor<int64_t>({}, {5}));
}

// The overlap is a third exactly; only more suppresses.
TEST(Nms, SuppressesAboveTheThresholdOnly) {
  const Tensor boxes = tensor<double>({1, 2, 4}, {0, 0, 1, 2, 0, 1, 1, 3}),
               scores = tensor<double>({1, 1, 2}, {0.5, 0.4});
  const auto count = [&](double t) {
    return run_op(NmsAttrs{.max_per_class = 2}, {boxes, scores, tensor<double>({}, {t})})[1];
  };
  expect_equal(count(1.0 / 3), tensor<int64_t>({}, {2}));
  expect_equal(count(0.33), tensor<int64_t>({}, {1}));
}

TEST(Nms, Refuses) {
  const NmsAttrs a{.max_per_class = 2};
  expect_refused(a, {iota<float>({1, 6, 5}), kScores});
  expect_refused(a, {iota<float>({6, 4}), kScores});
  expect_refused(a, {iota<float>({2, 6, 4}), kScores});
  expect_refused(a, {iota<float>({1, 5, 4}), kScores});
  expect_refused(a, {iota<int32_t>({1, 6, 4}), iota<int32_t>({1, 1, 6})});
  expect_refused(a, {kBoxes, iota<double>({1, 1, 6})});
  expect_refused(a, {kBoxes, kScores, iota<float>({2})});
  expect_refused(NmsAttrs{.max_per_class = 2, .center_point_box = 2}, {kBoxes, kScores});
  expect_equal(run_op(a, {iota<float>({0, 3, 4}), iota<float>({0, 1, 3})})[0], iota<int64_t>({0, 3}));
  expect_equal(run_op(a, {iota<float>({1, 0, 4}), iota<float>({1, 2, 0})})[1], tensor<int64_t>({}, {0}));
}

TEST(Unique, OfAllElements) {
  const Tensor x = tensor<float>({2, 3}, {2, 1, 1, 3, 4, 3});
  const auto y = run_op(UniqueAttrs{}, {x});
  expect_equal(y[0], tensor<float>({6}, {1, 2, 3, 4, 0, 0}));
  expect_equal(y[1], tensor<int64_t>({6}, {1, 0, 3, 4, 0, 0}));
  expect_equal(y[2], tensor<int64_t>({6}, {1, 0, 0, 2, 3, 2}));
  expect_equal(y[3], tensor<int64_t>({6}, {2, 1, 2, 1, 0, 0}));
  expect_equal(y[4], tensor<int64_t>({}, {4}));
  const auto u = run_op(UniqueAttrs{.sorted = 0}, {x});
  expect_equal(u[0], tensor<float>({6}, {2, 1, 3, 4, 0, 0}));
  expect_equal(u[1], tensor<int64_t>({6}, {0, 1, 3, 4, 0, 0}));
  expect_equal(u[2], tensor<int64_t>({6}, {0, 1, 1, 2, 3, 2}));
  expect_equal(u[3], tensor<int64_t>({6}, {1, 2, 2, 1, 0, 0}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto n = run_op(UniqueAttrs{}, {tensor<float>({4}, {nan, 1, nan, -1})});
  expect_equal(n[0], tensor<float>({4}, {-1, 1, nan, 0}));
  expect_equal(n[4], tensor<int64_t>({}, {3}));
}

TEST(Unique, OfSlices) {
  const Tensor x = tensor<int8_t>({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4});
  const auto rows = run_op(UniqueAttrs{.axis = 0}, {x});
  expect_equal(rows[0], tensor<int8_t>({3, 3}, {1, 0, 0, 2, 3, 4, 0, 0, 0}));
  expect_equal(rows[1], tensor<int64_t>({3}, {0, 2, 0}));
  expect_equal(rows[2], tensor<int64_t>({3}, {0, 0, 1}));
  expect_equal(rows[3], tensor<int64_t>({3}, {2, 1, 0}));
  const auto columns = run_op(UniqueAttrs{.axis = 1}, {tensor<int8_t>({2, 3}, {1, 0, 1, 5, 7, 5})});
  expect_equal(columns[0], tensor<int8_t>({2, 3}, {0, 1, 0, 7, 5, 0}));
  expect_equal(columns[2], tensor<int64_t>({3}, {1, 0, 1}));
  expect_equal(columns[4], tensor<int64_t>({}, {2}));
}

// An empty value may claim huge axes; they are not walked.
TEST(Unique, DoesNotWalkEmptyValues) {
  const int64_t huge = int64_t{1} << 40;
  expect_equal(run_op(UniqueAttrs{.axis = 1}, {iota<float>({huge, 0})})[4], tensor<int64_t>({}, {0}));
  expect_equal(run_op(UniqueAttrs{.axis = 1}, {iota<float>({huge, 2, 0})})[4], tensor<int64_t>({}, {1}));
  expect_equal(
      run_op(NmsAttrs{.max_per_class = 1}, {iota<float>({huge, 0, 4}), iota<float>({huge, 2, 0})})[1],
      tensor<int64_t>({}, {0}));
}

TEST(Unique, EdgesAndUnwantedOutputs) {
  const auto empty = run_op(UniqueAttrs{}, {iota<float>({0, 2})});
  expect_equal(empty[0], iota<float>({0}));
  expect_equal(empty[4], tensor<int64_t>({}, {0}));
  const auto scalar = run_op(UniqueAttrs{}, {tensor<bool>({}, {true})});
  expect_equal(scalar[0], tensor<bool>({1}, {true}));
  const auto some = run_op(UniqueAttrs{}, {tensor<uint64_t>({2}, {9, 9})}, {.unwanted = {1, 2, 3}});
  expect_equal(some[0], tensor<uint64_t>({2}, {9, 0}));
  expect_equal(some[4], tensor<int64_t>({}, {1}));
  expect_refused(UniqueAttrs{.axis = 2}, {iota<float>({1, 2})});
  expect_refused(UniqueAttrs{.axis = -2}, {iota<float>({1, 2})});
  expect_refused(UniqueAttrs{.sorted = 3}, {iota<float>({1, 2})});
  expect_run_fails(Code::kUnsupported, UniqueAttrs{}, {bits_tensor<uint16_t>(DType::kFloat16, {1}, {0})});
}

CheckLengthAttrs rule(LengthRule rule) { return {.rule = static_cast<int64_t>(rule)}; }

std::vector<Tensor> lengths(int64_t length, int64_t found, int64_t limit) {
  return {tensor<int64_t>({}, {length}), tensor<int64_t>({}, {found}), tensor<int64_t>({}, {limit})};
}

TEST(CheckLength, GivesTheLengthThatKeepsTheRule) {
  for (const LengthRule equal : {LengthRule::kMeet, LengthRule::kElements, LengthRule::kPart}) {
    expect_equal(run_op(rule(equal), lengths(-7, 4, 4))[0], tensor<int64_t>({}, {-7}));
    expect_run_fails(Code::kOutOfRange, rule(equal), lengths(4, 4, 5));
    expect_run_fails(Code::kOutOfRange, rule(equal), lengths(4, 5, 4));
  }
  for (const LengthRule within : {LengthRule::kWithin, LengthRule::kPlanned}) {
    for (const int64_t found : {0, 3, 4})
      expect_equal(run_op(rule(within), lengths(9, found, 4))[0], tensor<int64_t>({}, {9}));
    for (const int64_t found : {int64_t{5}, int64_t{-1}, INT64_MIN, INT64_MAX})
      expect_run_fails(Code::kOutOfRange, rule(within), lengths(0, found, 4));
  }
}

// Both numbers are in the status, so that a message can name them.
TEST(CheckLength, ReportsBothNumbers) {
  const Status meets = run_status(rule(LengthRule::kMeet), lengths(2, 2, 6));
  EXPECT_EQ(sentence(meets), "lengths 2 and 6 of one axis differ");
  const Status part = run_status(rule(LengthRule::kPart), lengths(9, 1, 3));
  EXPECT_EQ(part.a, 9);
  EXPECT_EQ(part.b, 3);
}

// A branch that was not converted: not an error of numbers, which folding would report.
TEST(CheckLength, FailsForABranchThatDoesNotFit) {
  expect_run_fails(Code::kUnsupported, rule(LengthRule::kUnfit), lengths(0, 0, 0));
}

TEST(CheckLength, RefusesWhatIsNotALength) {
  const Tensor one = tensor<int64_t>({}, {1});
  expect_refused(rule(LengthRule::kMeet), {one, one, tensor<int32_t>({}, {1})});
  expect_refused(rule(LengthRule::kMeet), {one, tensor<int64_t>({1}, {1}), one});
  expect_refused(CheckLengthAttrs{.rule = 6}, {one, one, one});
  expect_refused(CheckLengthAttrs{.rule = -1}, {one, one, one});
}

}  // namespace
}  // namespace sinter::test
