// What ops.def states of each operation is held to what its reference kernel computes.
#include "converter/ir/op_traits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "converter/ir/builder.h"
#include "converter/ir/integer_range.h"
#include "converter/ir/op_table.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// ---- tables

TEST(OpTable, NamesTheFirstOperationWithoutAnAnswer) {
  static constexpr OpRow<int> kGap[] = {{Op::kAbs, 1}, {Op::kSign, 2}};
  static_assert(unanswered(kGap) == Op::kNeg);
  static constexpr OpRow<int> kOwnFirst[] = {{WorkKind::kCheapFunction, 3}, {Op::kNeg, 4}};
  EXPECT_EQ(answer_for(kOwnFirst, Op::kNeg), 4);
  EXPECT_EQ(answer_for(kOwnFirst, Op::kAbs), 3);
  EXPECT_EQ(row_for(kOwnFirst, {Op::kConv, work_kind(Op::kConv)}), nullptr);
}

TEST(OpTable, ListsEveryRowOfOpsDef) {
  ASSERT_EQ(std::size(kOpWork), static_cast<size_t>(kOpCount));
  for (int i = 0; i < kOpCount; ++i) {
    const OpInfo& row = op_info_at(i);
    EXPECT_EQ(kOpWork[i].op, row.op);
    EXPECT_EQ(kOpWork[i].work, work_kind(row.op)) << row.name;
    EXPECT_EQ(kOpWork[i].traits, row.traits) << row.name;
  }
}

// ---- columns against each other

TEST(OpTraits, ColumnsAgree) {
  std::set<Op> reached;
  for (const OpWork& of : kOpWork) {
    const char* name = op_name(of.op);
    const Elements e = elements_of(of.op);
    const bool arranges = moves(of.op) || e == Elements::kWritten;
    EXPECT_EQ(has_traits(of.op, kMovement), arranges) << name;
    EXPECT_EQ(has_traits(of.op, kControl), of.work == WorkKind::kControl) << name;
    EXPECT_EQ(reads_indices(of.op), has_traits(of.op, kMovement) && op_info(of.op)->min_inputs >= 2 &&
                                        of.op != Op::kReverseSequence && of.op != Op::kCacheUpdate)
        << name;
    if (moves(of.op)) {
      EXPECT_FALSE(accumulates(of.op)) << name;
      EXPECT_EQ(integer_row(of.op).kind, IntegerRow::kSame) << name;
    }
    // A table is a function of one value at a time.
    EXPECT_TRUE(integer_row(of.op).kind != IntegerRow::kTable || is_elementwise(of.op)) << name;
    if (integer_row(of.op).kind != IntegerRow::kRow) continue;
    const Op row = integer_row(of.op).row;
    reached.insert(row);
    EXPECT_EQ(integer_row(row).kind, IntegerRow::kSame) << name;
    EXPECT_EQ(accumulates(of.op), accumulates(row)) << name;
    EXPECT_EQ(has_traits(of.op, kChannelsLast), has_traits(row, kChannelsLast) && of.op != Op::kResize)
        << name;
  }
  // An integer row that no other row names would never be used. These two are what Table stands for. What
  // quantizes reads floats.
  reached.insert({Op::kLut, Op::kQTable, Op::kQuantize, Op::kQuantizeRows});
  for (const OpWork& of : kOpWork)
    EXPECT_TRUE(op_name(of.op)[0] != 'Q' || reached.count(of.op) != 0) << op_name(of.op);
}

// ---- ranges: what a function of one value gives

ConstantPtr numbers(const Dims& dims, std::vector<float> items) {
  return Constant::of<float>(DType::kFloat32, dims, items);
}
std::vector<double> result_of(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs,
                              size_t outputs = 1) {
  std::vector<ConstantPtr> results;
  const Status status = evaluate(attrs, inputs, outputs, &results, false);
  EXPECT_TRUE(status.ok()) << op_name(op_of(attrs)) << ": " << status.message;
  return status.ok() ? results[0]->as_doubles() : std::vector<double>{};
}

template <size_t I = 0, class Visit>
void each_op(const Visit& visit) {
  if constexpr (I + 1 < std::variant_size_v<OpAttrs>) {
    visit(OpAttrs(std::in_place_index<I>));
    each_op<I + 1>(visit);
  }
}

TEST(OpTraits, FunctionsOfOneValueAreWithinOneWhereARowStatesIt) {
  std::vector<float> items;
  for (int i = -400; i <= 400; ++i) items.push_back(static_cast<float>(i) / 8);
  int checked = 0;
  each_op([&](const OpAttrs& attrs) {
    const Op op = op_of(attrs);
    if (!is_elementwise(op) || op_info(op)->max_inputs != 1 || elements_of(op) == Elements::kTruth ||
        op == Op::kBitNot || moves(op) || elements_of(op) == Elements::kConverted)
      return;
    // Sine and cosine are within 1, and other functions of the row are not.
    const OpAttrs of = op == Op::kTrig ? OpAttrs(TrigAttrs{static_cast<int64_t>(TrigFn::kTan)}) : attrs;
    const std::vector<double> y = result_of(of, {numbers({static_cast<int64_t>(items.size())}, items)});
    const bool within = std::all_of(y.begin(), y.end(), [](double v) { return !(std::fabs(v) > 1); });
    EXPECT_EQ(within, elements_of(op) == Elements::kWithinOne) << op_name(op);
    ++checked;
  });
  EXPECT_GT(checked, 15);
}

// ---- movement: each row that moves has an example here, whose result consists of the operand's elements

struct Example {
  OpAttrs attrs;
  std::vector<ConstantPtr> inputs;
};

std::vector<Example> movements() {
  const ConstantPtr x = numbers({2, 3}, {10, 20, 30, 40, 50, 60}), other = numbers({2, 1}, {70, 80});
  const ConstantPtr at = Constant::int64s(std::vector<int64_t>{1, 0}), fill = numbers({}, {99});
  const auto tuples = Constant::of<int64_t>(DType::kInt64, {1, 2}, std::vector<int64_t>{1, 2});
  const auto each = Constant::of<int64_t>(DType::kInt64, {2, 1}, std::vector<int64_t>{2, 0});
  SliceAttrs slice;
  slice.starts = {0, 1}, slice.steps = {1, 1}, slice.sizes = {2, 2};
  return {{ViewAttrs{{3, 2}, -1}, {x}},
          {CopyAttrs{}, {x}},
          {TransposeAttrs{{1, 0}}, {x}},
          {slice, {x}},
          {ConcatAttrs{1}, {x, other}},
          {TileAttrs{{2, 1}}, {x}},
          {BroadcastAttrs{{2, 2, 3}}, {x}},
          {PadAttrs{{0, 1, 0, 0}, 0}, {x, fill}},
          {GatherAttrs{0}, {x, at}},
          {GatherElementsAttrs{1}, {x, each}},
          {GatherNdAttrs{0}, {x, tuples}},
          {ReverseSequenceAttrs{0, 1}, {x, Constant::int64s(std::vector<int64_t>{2, 1, 2})}}};
}

std::set<double> elements(const std::vector<double>& items) { return {items.begin(), items.end()}; }
bool includes(const std::set<double>& all, const std::set<double>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

TEST(OpTraits, MovedElementsAreTheOperands) {
  std::set<Op> shown;
  for (const Example& example : movements()) {
    const Op op = op_of(example.attrs);
    shown.insert(op);
    const std::set<double> y = elements(result_of(example.attrs, example.inputs));
    const std::set<double> x = elements(example.inputs[0]->as_doubles());
    std::set<double> all = x;
    for (size_t i = 1; i < example.inputs.size() && !reads_indices(op); ++i) {
      const std::vector<double> more = example.inputs[i]->as_doubles();
      all.insert(more.begin(), more.end());
    }
    EXPECT_TRUE(moves(op) && moves(example.attrs)) << op_name(op);
    EXPECT_TRUE(includes(all, y)) << op_name(op);
    EXPECT_EQ(moves_one(example.attrs), includes(x, y)) << op_name(op);
    EXPECT_EQ(moves_whole(example.attrs), y == x && elements_of(op) == Elements::kMoved) << op_name(op);
    // What indices or lengths place is not placed by attributes; a second operand that is a fill or a part
    // is.
    const bool placed = example.inputs.size() > 1 && elements_of(op) != Elements::kPadded &&
                        elements_of(op) != Elements::kJoined;
    EXPECT_EQ(moves_by_attributes(example.attrs), !placed) << op_name(op);
  }
  for (const OpWork& of : kOpWork)
    EXPECT_EQ(moves(of.op), shown.count(of.op) != 0) << op_name(of.op) << " needs an example in movements()";
}

TEST(OpTraits, AViewAsAnotherTypeMovesNothing) {
  const OpAttrs bits = ViewAttrs{{6}, static_cast<int64_t>(DType::kInt32)};
  EXPECT_TRUE(moves(Op::kView));
  for (const auto& question : {&moves_one, &moves_whole, &moves_by_attributes}) EXPECT_FALSE(question(bits));
  EXPECT_EQ(selected_operands({bits, {0}, {1}, "", "", {}}), 0u);
}

// Two bytes of 0 to 10 are a number of up to 2570.
TEST(OpTraits, TheRangeOfAViewAsAnotherTypeIsItsTypes) {
  Graph g;
  Builder builder(g);
  const ValueId x = g.add_value("x", DType::kInt8, {4});
  g.inputs.push_back(x);
  std::vector<ValueId> clamped, same, other;
  ASSERT_TRUE(builder.emit(ClampAttrs{0, 10}, {x}, 1, &clamped).ok());
  ASSERT_TRUE(builder.emit(ViewAttrs{{2, 2}, -1}, clamped, 1, &same).ok());
  ASSERT_TRUE(builder.emit(ViewAttrs{{2}, static_cast<int64_t>(DType::kInt16)}, clamped, 1, &other).ok());
  EXPECT_EQ(integer_range(g, same[0])->high, 10);
  EXPECT_EQ(integer_range(g, other[0])->high, 32767);
}

TEST(OpTraits, TheLogarithmOfASoftmaxIsNotWithinOne) {
  EXPECT_TRUE(is_within_one(SoftmaxAttrs{1, 0}));
  EXPECT_FALSE(is_within_one(SoftmaxAttrs{1, 1}));
}

TEST(OpTraits, Products) {
  std::set<std::string> weighted, recurrent;
  for (const OpWork& of : kOpWork) {
    if (is_weighted_product(of.op)) weighted.insert(op_name(of.op));
    if (is_recurrent(of.op)) recurrent.insert(op_name(of.op));
    EXPECT_TRUE(!is_weighted_product(of.op) || (may_be_weights(of.op, 1) && !may_be_weights(of.op, 0)));
  }
  EXPECT_EQ(weighted, (std::set<std::string>{"Conv", "ConvTranspose", "DepthwiseConv", "FullyConnected"}));
  EXPECT_EQ(recurrent, (std::set<std::string>{"Gru", "Lstm", "Rnn"}));
}

}  // namespace
}  // namespace sinter::convert
