// What is known of large constants without computing them: ranges, positions, choices, and every n-th row.
#include "converter/ir/known_results.h"

#include <gtest/gtest.h>

#include "converter/ir/builder.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/recipe.h"
#include "converter/ir/strided_writes.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::to;

constexpr int64_t kMany = 1 << 17;

IntList int_list(const Dims& dims) { return IntList(std::span<const int64_t>(dims)); }
SliceAttrs every(int64_t first, int64_t step, int64_t size) {
  SliceAttrs a;
  a.starts = {first}, a.steps = {step}, a.sizes = {size};
  return a;
}

ConstantPtr apply(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs) {
  std::vector<ConstantPtr> results;
  EXPECT_TRUE(evaluate(attrs, inputs, 1, &results).ok());
  return results.at(0);
}
ConstantPtr bits(BitwiseFn fn, const ConstantPtr& x, int64_t operand) {
  return apply(BitwiseAttrs{static_cast<int64_t>(fn)}, {x, Constant::scalar_int(x->dtype(), operand)});
}

ConstantPtr random_bytes(int64_t count) {
  std::vector<uint8_t> items(static_cast<size_t>(count));
  for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  return Constant::of<uint8_t>(DType::kUint8, {count}, items);
}

void expect_range(const ConstantPtr& c, int64_t low, int64_t high) {
  const auto range = integer_range(*c);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->low, low);
  EXPECT_EQ(range->high, high);
}

TEST(KnownResults, RangesOfBitsAndMoves) {
  const ConstantPtr bytes = random_bytes(kMany);
  const ConstantPtr low = bits(BitwiseFn::kAnd, bytes, 15), high = bits(BitwiseFn::kShiftRight, bytes, 5);
  expect_range(low, 0, 15);
  expect_range(high, 0, 7);
  expect_range(apply(to(DType::kInt64), {low}), 0, 15);
  expect_range(apply(ConcatAttrs{0}, {low, high}), 0, 15);
  expect_range(apply(ViewAttrs{int_list({kMany / 2, 2})}, {low}), 0, 15);
  const ConstantPtr words = apply(to(DType::kInt32), {apply(to(DType::kInt8), {bytes})});
  expect_range(words, -128, 127);
  expect_range(bits(BitwiseFn::kShiftRight, words, 4), -8, 7);  // by its numbers
  expect_range(bits(BitwiseFn::kAnd, words, 15), 0, 15);
  expect_range(bits(BitwiseFn::kOr, low, 16), 0, 255);
}

TEST(KnownResults, ComparisonsThatRangesDecide) {
  const ConstantPtr bytes = random_bytes(kMany);
  const auto less = [&](int64_t than) {
    return apply(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)},
                 {bytes, Constant::scalar_int(DType::kUint8, than)});
  };
  const ConstantPtr never = less(0), some = less(7), other = random_bytes(kMany);
  EXPECT_TRUE(never->is_lazy());
  expect_range(never, 0, 0);
  expect_range(some, 0, 1);
  EXPECT_EQ(apply(WhereAttrs{}, {never, other, bytes}), bytes);
  const ConstantPtr chosen = apply(WhereAttrs{}, {some, other, bytes});
  for (const int64_t i : {int64_t{0}, int64_t{1}, kMany - 1}) {
    const auto at = static_cast<size_t>(i);
    const uint8_t b = static_cast<uint8_t>(bytes->load().bytes[at]);
    EXPECT_EQ(chosen->load().bytes[at], b < 7 ? other->load().bytes[at] : bytes->load().bytes[at]);
  }
}

TEST(KnownResults, PositionsStayEvenlySpaced) {
  const ConstantPtr all = Constant::evenly_spaced(DType::kInt64, {kMany}, {-5, 3});
  const std::vector<int64_t> items = all->as_int64s();
  for (const size_t i : {size_t{0}, size_t{1}, static_cast<size_t>(kMany - 1)})
    EXPECT_EQ(items[i], -5 + 3 * static_cast<int64_t>(i));
  const ConstantPtr held = Constant::int64s(items);
  for (const ConstantPtr& c : {all, held}) {
    const ConstantPtr odd = apply(every(1, 2, kMany / 2), {c});
    ASSERT_TRUE(odd->progression().has_value());
    EXPECT_EQ(odd->progression()->first, -2);
    EXPECT_EQ(odd->progression()->step, 6);
    const ConstantPtr column = apply(ViewAttrs{int_list({kMany / 2, 1})}, {odd});
    EXPECT_TRUE(column->progression().has_value());
    EXPECT_EQ(column->as_int64s()[77], -2 + 6 * 77);
  }
  std::vector<int64_t> broken = items;
  broken.back() += 1;
  EXPECT_FALSE(progression_of(*Constant::int64s(broken)).has_value());
  EXPECT_FALSE(apply(every(1, 2, kMany / 2), {Constant::int64s(broken)})->progression().has_value());
}

ConstantPtr positions(int64_t first, int64_t n, int64_t count) {
  return Constant::evenly_spaced(DType::kInt64, {count, 1}, {first, n});
}

// As ScatterNd gives it.
void expect_scattered(const ConstantPtr& got, const ConstantPtr& data, const ConstantPtr& at,
                      const ConstantPtr& updates) {
  ASSERT_NE(got, nullptr);
  std::vector<ConstantPtr> want;
  ASSERT_TRUE(evaluate(ScatterNdAttrs{0}, {data, at, updates}, 1, &want, false).ok());
  EXPECT_EQ(got->dims(), want[0]->dims());
  const LoadedBytes a = got->load(), b = want[0]->load();
  EXPECT_TRUE(std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end()));
}

TEST(StridedWrites, HalvesOfBytesBecomeJoined) {
  const ConstantPtr bytes = random_bytes(kMany);
  const ConstantPtr low = apply(to(DType::kInt32), {bits(BitwiseFn::kAnd, bytes, 15)});
  const ConstantPtr high = apply(to(DType::kInt32), {bits(BitwiseFn::kShiftRight, bytes, 4)});
  const ConstantPtr nothing =
      computed_later(DType::kInt32, {2 * kMany}, BroadcastAttrs{int_list({2 * kMany})},
                     {Constant::scalar_int(DType::kInt32, 0)});
  const ConstantPtr odd = positions(1, 2, kMany), even = positions(0, 2, kMany);
  const ConstantPtr once = with_rows(nothing, odd, low);
  expect_scattered(once, nothing, odd, low);
  const ConstantPtr twice = with_rows(once, even, high);
  expect_scattered(twice, once, even, high);
  expect_range(twice, 0, 15);
  ASSERT_NE(twice->recipe(), nullptr);
  EXPECT_EQ(twice->recipe()->stored_bytes, static_cast<size_t>(kMany));  // two numbers in a byte
}

TEST(StridedWrites, RowsOfAnyDataAndThoseThatAreNotStrided) {
  const ConstantPtr data = random_bytes(12 * 5)->reshaped({12, 5}),
                    updates = random_bytes(4 * 5)->reshaped({4, 5});
  for (int64_t first = 0; first < 3; ++first) {
    const ConstantPtr at = positions(first, 3, 4);
    expect_scattered(with_rows(data, at, updates), data, at, updates);
  }
  for (const int64_t first : {0, 4, 8}) {
    const ConstantPtr at = positions(first, 1, 4);
    expect_scattered(with_rows(data, at, updates), data, at, updates);
  }
  EXPECT_EQ(with_rows(data, positions(2, 1, 4), updates), nullptr);
  EXPECT_EQ(with_rows(data, positions(12, 1, 4), updates), nullptr);
  EXPECT_EQ(with_rows(data, positions(3, 3, 4), updates), nullptr);  // its last one is beyond the end
  EXPECT_EQ(with_rows(data, positions(0, 2, 4), updates), nullptr);
  EXPECT_EQ(with_rows(data, positions(9, -3, 4), updates), nullptr);
  const std::vector<int64_t> uneven{0, 3, 6, 10};
  EXPECT_EQ(with_rows(data, Constant::int64s(uneven)->reshaped({4, 1}), updates), nullptr);
}

// A product of a transposed weight reads the weight.
TEST(KnownResults, WhatIsTransposedBack) {
  const ConstantPtr w = random_bytes(kMany)->reshaped({kMany / 256, 16, 16});
  const auto later = [&](const IntList& perm, const Dims& dims) {
    return computed_later(DType::kUint8, dims, TransposeAttrs{perm}, {w});
  };
  const ConstantPtr turned = later({1, 2, 0}, {16, 16, kMany / 256});
  EXPECT_EQ(apply(TransposeAttrs{IntList{2, 0, 1}}, {turned}), w);
  // Other turns give what they give.
  for (const IntList& perm : {IntList{0, 1, 2}, IntList{1, 2, 0}}) {
    const ConstantPtr other = apply(TransposeAttrs{perm}, {turned});
    EXPECT_NE(other, w);
    EXPECT_EQ(other->as_int64s(),
              apply(TransposeAttrs{perm}, {apply(TransposeAttrs{IntList{1, 2, 0}}, {w})})->as_int64s());
  }
}

}  // namespace
}  // namespace sinter::convert
