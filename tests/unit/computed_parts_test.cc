// What is computed piece by piece is what the operations give on whole tensors.
#include "converter/ir/computed_parts.h"

#include <gtest/gtest.h>

#include "converter/ir/builder.h"
#include "converter/ir/recipe.h"
#include "converter/ir/spread_axis.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::to;

constexpr int64_t kRows = 520, kColumns = 384;  // several pieces, the last one shorter

IntList list(const Dims& dims) { return IntList(std::span<const int64_t>(dims)); }

ConstantPtr numbers(const Dims& dims, int64_t period = 1 << 30, DType dtype = DType::kInt32) {
  std::vector<int64_t> items(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < items.size(); ++i)
    items[i] = static_cast<int64_t>((i * 2654435761u + 12345) >> 5 & 0x7fffffff) % period;
  std::vector<ConstantPtr> cast;
  EXPECT_TRUE(evaluate(to(dtype), {Constant::of<int64_t>(DType::kInt64, dims, items)}, 1, &cast, false).ok());
  return cast[0];
}

Bytes bytes_of(const Constant& c) {
  const LoadedBytes loaded = c.load();
  return {loaded.bytes.begin(), loaded.bytes.end()};
}

// The same twice: computed when it is read, and at once.
struct Twice {
  ConstantPtr later, now;
};
Twice same(const ConstantPtr& c) { return {c, c}; }
Twice apply(const OpAttrs& attrs, const std::vector<Twice>& inputs) {
  std::vector<ConstantPtr> later, now, results;
  for (const Twice& t : inputs) later.push_back(t.later), now.push_back(t.now);
  EXPECT_TRUE(evaluate(attrs, now, 1, &results, false).ok());
  return {computed_later(results[0]->dtype(), results[0]->dims(), attrs, later), results[0]};
}
void expect_same(const Twice& t) {
  EXPECT_EQ(t.later->dtype(), t.now->dtype());
  EXPECT_EQ(bytes_of(*t.later), bytes_of(*t.now));
}

// Words [rows / 8, columns] as rows of numbers, one of each word's eight.
Twice unpacked(int64_t rows, int64_t columns) {
  const Twice words = same(numbers({rows / 8, 1, columns}));
  const Twice shifts = same(numbers({1, 8, 1}, 28));
  const Twice shifted = apply(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kShiftRight)}, {words, shifts});
  const Twice low = apply(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)},
                          {shifted, same(Constant::scalar_int(DType::kInt32, 15))});
  return apply(ViewAttrs{list({rows, columns})}, {low});
}

TEST(ComputedParts, WordsUnpackedAndTurned) {
  const Twice q = unpacked(kRows, kColumns);
  expect_same(q);
  expect_same(apply(TransposeAttrs{IntList{1, 0}}, {q}));
}

TEST(ComputedParts, OperandsOfGroups) {
  const Twice q = unpacked(kRows, kColumns);
  const Twice index = same(numbers({kRows}, 7, DType::kInt64));
  const Twice table = apply(AddAttrs{}, {same(numbers({7, kColumns}, 16)), same(numbers({kColumns}, 3))});
  const Twice rows = apply(ViewAttrs{list({kRows, 1})}, {index});
  for (const Twice& spread :
       {apply(GatherAttrs{0}, {table, index}), apply(GatherNdAttrs{0}, {table, rows})}) {
    const Twice difference = apply(SubAttrs{}, {q, spread});
    expect_same(difference);
    expect_same(apply(to(DType::kFloat16), {difference}));
    expect_same(apply(TransposeAttrs{IntList{1, 0}}, {apply(to(DType::kFloat32), {difference})}));
  }
  const Twice along = same(numbers({kColumns}, 9, DType::kInt64));
  expect_same(apply(GatherAttrs{1},
                    {apply(MulAttrs{}, {same(numbers({kRows, 9}, 16)), same(numbers({9}, 3))}), along}));
}

TEST(ComputedParts, NumbersOfFewBits) {
  const Twice q = unpacked(kRows, kColumns);
  expect_same(apply(to(DType::kUint4), {q}));
  expect_same(apply(to(DType::kUint8), {apply(to(DType::kUint4), {q})}));
  const Twice odd = unpacked(64 * 8, 2 * 8 + 515);  // rows of half bytes
  expect_same(apply(to(DType::kUint4), {odd}));
}

TEST(ComputedParts, WhatIsNotDoneInPartsIsDoneWhole) {
  const Twice q = unpacked(kRows, kColumns), other = unpacked(kRows, kColumns);
  ConcatAttrs below, beside;
  beside.axis = 1;
  expect_same(apply(below, {q, other}));
  expect_same(apply(beside, {q, other}));
  expect_same(apply(SliceAttrs{IntList{8, 3}, IntList{1, 2}, IntList{kRows - 8, kColumns / 2 - 2}}, {q}));
  // Rows that begin within words.
  expect_same(apply(ViewAttrs{list({kRows * kColumns / 24, 24})}, {q}));
  expect_same(apply(ViewAttrs{list({kRows * kColumns})}, {q}));
  expect_same(apply(BroadcastAttrs{list({3, kRows, kColumns})}, {q}));
  expect_same(apply(BroadcastAttrs{list({kRows, kColumns})}, {same(numbers({kColumns}))}));
}

// Rows of both, joined again.
void expect_together(const Twice& a, const Twice& b) {
  const auto rows = static_cast<size_t>(a.now->dims()[0]);
  Bytes joined[2];
  int64_t next = 0;
  const auto add = [&](int64_t row, std::span<const LoadedBytes> pieces) {
    EXPECT_EQ(row, next);
    for (const size_t i : {0u, 1u})
      joined[i].insert(joined[i].end(), pieces[i].bytes.begin(), pieces[i].bytes.end());
    next = static_cast<int64_t>(joined[0].size() * rows / a.now->byte_size());
    return true;
  };
  EXPECT_TRUE(in_pieces({a.later, b.later}, add));
  EXPECT_EQ(joined[0], bytes_of(*a.now));
  EXPECT_EQ(joined[1], bytes_of(*b.now));
}

TEST(ComputedParts, ConstantsInPiecesTogether) {
  const Twice q = unpacked(kRows, kColumns);
  const Twice wide = apply(to(DType::kFloat32), {q});
  const Twice turned = apply(TransposeAttrs{IntList{1, 0}}, {q});
  expect_together(q, wide);
  expect_together(apply(to(DType::kUint4), {q}), same(wide.now));
  expect_together(turned, apply(TransposeAttrs{IntList{1, 0}}, {wide}));
  expect_together(apply(SliceAttrs{IntList{0, 0}, IntList{1, 1}, IntList{kRows, kColumns}}, {q}),
                  wide);  // whole
  const Twice small = same(numbers({3, 5}));
  expect_together(small, apply(to(DType::kInt8), {small}));
  int calls = 0;
  EXPECT_FALSE(
      in_pieces({q.later, wide.later}, [&](int64_t, std::span<const LoadedBytes>) { return ++calls < 2; }));
  EXPECT_EQ(calls, 2);
}

TEST(ComputedParts, WhatTheyShareIsComputedOnce) {
  int loads = 0;
  const ConstantPtr leaf = Constant::lazy(DType::kInt32, {kRows, kColumns}, [&] {
    ++loads;
    return Bytes(static_cast<size_t>(kRows * kColumns) * 4);
  });
  const auto later = [&](DType t) { return computed_later(t, leaf->dims(), to(t), {leaf}); };
  const auto all = [](int64_t, std::span<const LoadedBytes>) { return true; };
  EXPECT_TRUE(in_pieces({later(DType::kFloat32), later(DType::kInt8)}, all));
  EXPECT_EQ(loads, 1);
}

TEST(ComputedParts, RowsOfSeveralConstants) {
  const Twice few = unpacked(40, kColumns), many = unpacked(kRows, kColumns);
  const Twice rows = apply(ConcatAttrs{0}, {few, many, few});
  expect_same(rows);
  expect_same(apply(to(DType::kFloat32), {rows}));
  expect_same(apply(ViewAttrs{list({2 * (kRows + 80), kColumns / 2})}, {rows}));
}

// First axes of few indices, as those of experts and heads, are parts of rows.
TEST(ComputedParts, ShortAxesInFrontOfRows) {
  constexpr int64_t kExperts = 4, kEach = 260, kBlocks = 6, kBlock = 64;
  const Dims dims{kExperts, kEach, kBlocks, kBlock};
  const Twice places = apply(to(DType::kInt32), {apply(to(DType::kUint4), {same(numbers(dims, 16))})});
  const Twice table = same(numbers({16}, 1000)), rows = same(numbers({16, 3}, 1000));
  const Twice found = apply(GatherAttrs{0}, {table, places});
  expect_same(found);
  const Twice scaled = apply(MulAttrs{}, {found, same(numbers({kExperts, kEach, kBlocks, 1}, 90))});
  expect_same(scaled);
  const Twice matrices = apply(ViewAttrs{list({kExperts * kEach, kBlocks * kBlock})}, {scaled});
  expect_same(matrices);
  expect_together(matrices, apply(to(DType::kFloat32), {matrices}));
  // Operands that have some of these axes, or none.
  for (const Dims& own :
       {Dims{kExperts, 1, kBlocks, 1}, {kEach, 1, kBlock}, {1, 1, kBlocks, kBlock}, {kBlock}})
    expect_same(apply(AddAttrs{}, {scaled, same(numbers(own, 50))}));
  expect_same(apply(BroadcastAttrs{list(dims)}, {same(numbers({kExperts, kEach, kBlocks, 1}))}));
  expect_same(apply(BroadcastAttrs{list(dims)}, {same(numbers({kExperts, 1, kBlocks, 1}))}));
  // Operations that keep these axes, and others.
  expect_same(apply(TransposeAttrs{IntList{0, 1, 3, 2}}, {scaled}));
  expect_same(apply(TransposeAttrs{IntList{0, 2, 1, 3}}, {scaled}));
  for (const int64_t axis : {0, 1, 2, 3}) {
    expect_same(apply(ConcatAttrs{axis}, {scaled, found}));
    expect_same(apply(GatherAttrs{axis}, {scaled, same(numbers({5, 2}, 4, DType::kInt64))}));
  }
  expect_same(apply(GatherAttrs{0},
                    {rows, apply(ViewAttrs{list({5, 8, kExperts * kEach * kBlocks / 5, 8})}, {places})}));
  expect_same(
      apply(GatherNdAttrs{0}, {table, apply(ViewAttrs{list({2, 2, kEach * kBlocks, kBlock, 1})}, {places})}));
  for (const Dims& seen : {Dims{1, 1, kExperts * kEach, 384}, {2, 520, 384}, {30, 52, 256}, {8, 1, 130, 384}})
    expect_same(apply(to(DType::kFloat32), {apply(ViewAttrs{list(seen)}, {scaled})}));
}

TEST(ComputedParts, NumbersThatArePackedInBetween) {
  const Twice q = unpacked(kRows, kColumns);
  const Twice packed = apply(to(DType::kUint4), {q});
  expect_same(apply(to(DType::kInt32), {packed}));
  expect_same(apply(to(DType::kFloat32), {apply(to(DType::kInt8), {packed})}));
  // Here the cast in between changes them.
  const Twice signed_ones = apply(to(DType::kInt4), {q});
  expect_same(apply(to(DType::kInt32), {signed_ones}));
}

TEST(ComputedParts, OperationsThatNumbersCanFail) {
  const ConstantPtr table = numbers({7, 4}), inside = numbers({9}, 7, DType::kInt64),
                    outside = numbers({9}, 8, DType::kInt64);
  EXPECT_TRUE(can_wait(GatherAttrs{0}, {table, inside}, DType::kInt32));
  EXPECT_FALSE(
      can_wait(GatherAttrs{0}, {table, Constant::int64s(std::vector<int64_t>{0, 7})}, DType::kInt32));
  EXPECT_TRUE(
      can_wait(GatherAttrs{0}, {table, Constant::int64s(std::vector<int64_t>{6, -7})}, DType::kInt32));
  EXPECT_FALSE(can_wait(GatherAttrs{0}, {table, Constant::int64s(std::vector<int64_t>{-8})}, DType::kInt32));
  EXPECT_TRUE(can_wait(AddAttrs{}, {table, table}, DType::kInt32));
  EXPECT_TRUE(can_wait(ConcatAttrs{}, {table, table}, DType::kInt32));
  EXPECT_FALSE(can_wait(CumulateAttrs{}, {table}, DType::kInt32));
}

TEST(SpreadAxis, FindsTheTableBehindTurnsAndCasts) {
  const ConstantPtr table = numbers({7, kColumns}, 16), index = numbers({kRows}, 7, DType::kInt64);
  const Twice spread = apply(GatherAttrs{0}, {same(table), same(index)});
  const Twice turned = apply(to(DType::kFloat32), {apply(TransposeAttrs{IntList{1, 0}}, {spread})});
  const auto found = spread_along(turned.later, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->index, index->as_int64s());
  EXPECT_EQ(found->table->dims(), (Dims{kColumns, 7}));
  EXPECT_EQ(found->table->dtype(), DType::kFloat32);
  const std::vector<double> all = turned.now->as_doubles(), few = found->table->as_doubles();
  for (size_t n = 0; n < kColumns; ++n)
    for (size_t k = 0; k < kRows; ++k)
      ASSERT_EQ(all[n * kRows + k], few[n * 7 + static_cast<size_t>(found->index[k])]);
  EXPECT_FALSE(spread_along(turned.later, 0));
  EXPECT_FALSE(spread_along(table, 0));
}

TEST(SpreadAxis, FindsBlocksOfRows) {
  constexpr int64_t kBlock = 64, kBlocks = kRows * kColumns / kBlock;
  const auto seen = [](const ConstantPtr& one, const Dims& wide) {
    const ConstantPtr c = computed_later(one->dtype(), wide, BroadcastAttrs{list(wide)}, {one});
    return computed_later(one->dtype(), {kRows, kColumns}, ViewAttrs{list({kRows, kColumns})}, {c});
  };
  const ConstantPtr numbers_of_blocks = numbers({kBlocks, 1});
  const auto found = blocks_along_rows(seen(numbers_of_blocks, {kBlocks, kBlock}), {kRows, kColumns});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->block, kBlock);
  EXPECT_EQ(found->table->dims(), (Dims{kRows, kColumns / kBlock}));
  EXPECT_EQ(found->table->as_int64s(), numbers_of_blocks->as_int64s());
  // Of matrices of experts.
  const auto experts =
      blocks_along_rows(seen(numbers_of_blocks->reshaped({2, kRows / 2, kColumns / kBlock, 1}),
                             {2, kRows / 2, kColumns / kBlock, kBlock}),
                        {kRows, kColumns});
  ASSERT_TRUE(experts);
  EXPECT_EQ(experts->block, kBlock);
  EXPECT_EQ(experts->table->as_int64s(), numbers_of_blocks->as_int64s());
  // Numbers that several blocks share.
  EXPECT_FALSE(blocks_along_rows(
      seen(numbers({2, 1, kColumns / kBlock, 1}), {2, kRows / 2, kColumns / kBlock, kBlock}),
      {kRows, kColumns}));
  // One number for all, seen without axes of blocks.
  const ConstantPtr all = numbers({1})->reshaped({});
  EXPECT_FALSE(blocks_along_rows(seen(all, {kRows * kColumns}), {kRows, kColumns}));
}

}  // namespace
}  // namespace sinter::convert
