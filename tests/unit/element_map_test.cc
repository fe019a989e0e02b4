// The map of elements is held to what the reference kernels do: each kernel moves the numbers of places, and
// the map has to name the places that they come from.
#include "converter/flow/element_map.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "converter/ir/builder.h"
#include "converter/ir/op_table.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

ConstantPtr numbered(const Dims& dims, int64_t from) {
  std::vector<int64_t> items(static_cast<size_t>(element_count(dims)));
  std::iota(items.begin(), items.end(), from);
  return Constant::of<int64_t>(DType::kInt64, dims, items);
}

class ElementMapTest : public ::testing::Test {
 protected:
  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Dims random_dims(size_t rank) {
    Dims dims;
    for (size_t i = 0; i < rank; ++i) dims.push_back(number(1, 5));
    return dims;
  }
  ConstantPtr random_indices(const Dims& dims, int64_t length) {
    std::vector<int64_t> items;
    for (int64_t i = 0; i < element_count(dims); ++i) items.push_back(number(-length, length - 1));
    return Constant::of<int64_t>(DType::kInt64, dims, items);
  }
  IntList list(const Dims& dims) { return IntList(std::span<const int64_t>(dims)); }

  // Operands whose elements move have numbers that no other operand has.
  void expect_moved(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, size_t moved) {
    std::vector<ConstantPtr> results;
    ASSERT_TRUE(evaluate(attrs, inputs, 1, &results, false).ok())
        << op_name(op_of(attrs)) << " " << to_string(attrs);
    OperandDims dims;
    std::vector<std::vector<int64_t>> items;
    for (const ConstantPtr& c : inputs) dims.push_back(&c->dims()), items.push_back(c->as_int64s());
    const ElementSources sources(attrs, dims, results[0]->dims());
    const auto index = [&](int64_t place) { return std::optional(items[1].at(static_cast<size_t>(place))); };
    const std::vector<int64_t> got = results[0]->as_int64s();
    for (size_t i = 0; i < got.size(); ++i) {
      const auto from = sources.of(static_cast<int64_t>(i), index);
      if (!from) {
        EXPECT_EQ(got[i], 0) << "the fill that no operand gives";
        continue;
      }
      ASSERT_LT(from->operand, moved);
      ASSERT_EQ(items[from->operand].at(static_cast<size_t>(from->place)), got[i])
          << op_name(op_of(attrs)) << " " << to_string(attrs) << " element " << i;
    }
    shown_.insert(op_of(attrs));
  }

  std::mt19937 random_{7};
  std::set<Op> shown_;
};

TEST_F(ElementMapTest, NamesTheElementsThatKernelsMove) {
  for (int turn = 0; turn < 60; ++turn) {
    const auto rank = static_cast<size_t>(number(1, 4));
    const Dims dims = random_dims(rank);
    const ConstantPtr x = numbered(dims, 1);
    const auto axis = static_cast<size_t>(number(0, static_cast<int64_t>(rank) - 1));
    expect_moved(ViewAttrs{IntList{element_count(dims)}, -1}, {x}, 1);
    expect_moved(CopyAttrs{}, {x}, 1);

    std::vector<int64_t> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random_);
    expect_moved(TransposeAttrs{list(Dims(perm))}, {x}, 1);

    SliceAttrs slice;
    for (const int64_t d : dims) {
      const int64_t size = number(0, d), step = size > 1 ? number(1, (d - 1) / (size - 1)) : number(1, 3);
      const bool back = number(0, 1) != 0;
      slice.sizes.push(size), slice.steps.push(back ? -step : step);
      slice.starts.push(size == 0 ? 0
                        : back    ? d - 1 - number(0, d - 1 - (size - 1) * step)
                                  : number(0, d - 1 - (size - 1) * step));
    }
    expect_moved(slice, {x}, 1);

    Dims repeats = random_dims(rank), wide = random_dims(2), narrow = dims;
    for (int64_t& r : repeats) r -= 2, r = std::max<int64_t>(r, 1);
    expect_moved(TileAttrs{list(repeats)}, {x}, 1);
    wide.insert(wide.end(), dims.begin(), dims.end());
    narrow[axis] = 1;
    expect_moved(BroadcastAttrs{list(wide)}, {numbered(narrow, 1)}, 1);

    Dims other = dims, third = dims;
    other[axis] = number(1, 4), third[axis] = number(1, 4);
    expect_moved(ConcatAttrs{static_cast<int64_t>(axis)}, {x, numbered(other, 1000), numbered(third, 2000)},
                 3);

    PadAttrs pad;
    for (size_t i = 0; i < 2 * rank; ++i) pad.pads.push(number(0, 2));
    expect_moved(pad, {x, numbered({}, 1000)}, 2);
    expect_moved(pad, {x}, 1);

    expect_moved(GatherAttrs{static_cast<int64_t>(axis)},
                 {x, random_indices(random_dims(static_cast<size_t>(number(0, 2))), dims[axis])}, 1);
    Dims picked = dims;
    picked[axis] = number(1, 6);
    expect_moved(GatherElementsAttrs{static_cast<int64_t>(axis)}, {x, random_indices(picked, dims[axis])}, 1);
    const auto batch = static_cast<size_t>(number(0, static_cast<int64_t>(rank) - 1)),
               tuple = static_cast<size_t>(number(1, static_cast<int64_t>(rank - batch)));
    Dims tuples(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(batch));
    tuples.push_back(number(1, 3)), tuples.push_back(static_cast<int64_t>(tuple));
    int64_t shortest = dims[batch];
    for (size_t i = batch; i < batch + tuple; ++i) shortest = std::min(shortest, dims[i]);
    expect_moved(GatherNdAttrs{static_cast<int64_t>(batch)}, {x, random_indices(tuples, shortest)}, 1);
  }
  // Lengths place the elements of this one.
  shown_.insert(Op::kReverseSequence);
  for (const OpWork& of : kOpWork)
    EXPECT_TRUE(!moves(of.op) || shown_.count(of.op) != 0) << op_name(of.op) << " needs a case here";
}

TEST_F(ElementMapTest, NamesTheElementsThatAreComputedTogether) {
  for (int turn = 0; turn < 40; ++turn) {
    const Dims whole = random_dims(static_cast<size_t>(number(1, 4)));
    std::vector<ConstantPtr> operands;
    OperandDims dims;
    for (int64_t k = 0; k < 2; ++k) {
      Dims own(whole.begin() + number(0, static_cast<int64_t>(whole.size())), whole.end());
      for (int64_t& d : own) d = k == 0 || number(0, 1) != 0 ? d : 1;
      operands.push_back(numbered(k == 0 ? whole : own, 1000 * k));
    }
    std::shuffle(operands.begin(), operands.end(), random_);
    for (const ConstantPtr& c : operands) dims.push_back(&c->dims());
    const ConstantPtr sum = evaluated(AddAttrs{}, operands, false);
    ASSERT_TRUE(sum);
    const ElementSources sources(AddAttrs{}, dims, sum->dims());
    const std::vector<int64_t> got = sum->as_int64s(), a = operands[0]->as_int64s(),
                               b = operands[1]->as_int64s();
    for (size_t i = 0; i < got.size(); ++i) {
      const auto place = static_cast<int64_t>(i);
      EXPECT_FALSE(sources.of(place));
      EXPECT_EQ(a.at(static_cast<size_t>(*sources.place_in(0, place))) +
                    b.at(static_cast<size_t>(*sources.place_in(1, place))),
                got[i]);
    }
  }
}

TEST_F(ElementMapTest, LeavesOutWhatItDoesNotKnow) {
  const Dims dims{2, 3}, padded{2, 5};
  // Other modes than a constant fill them with elements of the operand.
  const PadAttrs edge{{0, 1, 0, 1}, static_cast<int64_t>(PadMode::kEdge)};
  const auto map = element_map(edge, {&dims}, padded, 0);
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->axes[0].is_in_place());
  EXPECT_EQ(map->axes[1].axis, AxisSource::kOther);
  EXPECT_FALSE(ElementSources(edge, {&dims}, padded).of(1));
  const Dims bytes{24};
  EXPECT_FALSE(element_map(ViewAttrs{{24}, static_cast<int64_t>(DType::kInt8)}, {&dims}, bytes, 0));
  EXPECT_FALSE(element_map(SoftmaxAttrs{1, 0}, {&dims}, dims, 0));
  const Dims index{2};
  EXPECT_FALSE(ElementSources(GatherAttrs{0}, {&dims, &index}, dims).of(0)) << "without the indices";
}

}  // namespace
}  // namespace sinter::convert
