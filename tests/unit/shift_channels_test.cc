// Constant parts of channels leave the tensors and change no result.
#include "converter/quantize/shift_channels.h"

#include <gtest/gtest.h>

#include "converter/quantize/sample_list.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::Sketch;

Observations seen_of(const Sketch& s) {
  SampleList samples(std::span<const Sample>(&s.feeds, 1));
  return observe(s.graph, samples, observable_values(s.graph), {});
}

double width(const Sketch& s, ValueId id) {
  const Observations seen = seen_of(s);
  return seen.values.at(id).all.max - seen.values.at(id).all.min;
}

void expect_same(const Sketch& before, const Graph& after) {
  ASSERT_EQ(check(after), "") << dump(after);
  const auto want = testing::evaluate_graph(before.graph, before.feeds);
  const auto got = testing::evaluate_graph(after, before.feeds);
  for (size_t i = 0; i < want.size(); ++i)
    for (size_t k = 0; k < want[i].size(); ++k) ASSERT_NEAR(got[i][k], want[i][k], 1e-4);
}

// A bias with two channels far from the others.
ValueId far_bias(Sketch& s, int64_t channels) {
  std::vector<double> b = s.fill({channels}, -1, 1)->as_doubles();
  b[1] = 80, b[3] = -60;
  return s.graph.add_constant(
      Constant::of<float>(DType::kFloat32, {channels}, std::vector<float>(b.begin(), b.end())));
}

ConvAttrs conv(int64_t pad = 0) { return {{1, 1}, {1, 1}, {pad, pad, pad, pad}, 1}; }

// A residual stream of six channels, read by a plain convolution (with padding or not), and a head.
struct Stream {
  Sketch s;
  ValueId stem, sum, pooled;
  explicit Stream(int64_t pad, bool bounded = false) {
    const ValueId x = s.input({1, 8, 8, 3});
    stem = s.emit(conv(1), {x, s.constant({6, 3, 3, 3}), far_bias(s, 6)});
    ConvAttrs hidden = conv(pad);
    hidden.act_min = 0;
    const int64_t kernel = pad > 0 ? 3 : 1;
    const ValueId a = s.emit(hidden, {stem, s.constant({8, kernel, kernel, 6}), s.constant({8})});
    AddAttrs add;
    if (bounded) add.act_min = 0;
    sum = s.emit(add, {s.emit(conv(), {a, s.constant({6, 1, 1, 8})}), stem});
    AvgPoolAttrs average;
    average.kernel = {2, 2}, average.strides = {2, 2}, average.dilations = {1, 1},
    average.pads = {0, 0, 0, 0};
    ConcatAttrs join;
    join.axis = 3;
    MaxPoolAttrs most;
    most.kernel = {2, 2}, most.strides = {2, 2}, most.dilations = {1, 1}, most.pads = {0, 0, 0, 0};
    SliceAttrs cut;
    cut.starts = {0, 0, 0, 1}, cut.steps = {1, 1, 1, 3}, cut.sizes = {1, 4, 4, 4};
    pooled = s.emit(cut, {s.emit(join, {s.emit(average, {sum}), s.emit(most, {sum})})});
    ViewAttrs flat;
    flat.dims = {1, 64};
    s.output(s.emit(FullyConnectedAttrs{}, {s.emit(flat, {pooled}), s.constant({5, 64}), s.constant({5})}));
  }
};

TEST(ShiftChannels, StreamsOfSums) {
  const Stream net(0);
  Sketch after = net.s;
  EXPECT_EQ(shift_channels(after.graph, seen_of(net.s)), 8);
  expect_same(net.s, after.graph);
  for (const ValueId id : {net.stem, net.sum}) {
    EXPECT_GT(width(net.s, id), 100) << id;
    EXPECT_LT(width(after, id), 40) << id;
  }
}

TEST(ShiftChannels, PaddingAndBoundsKeepThem) {
  for (const bool bounded : {false, true}) {
    Stream net(bounded ? 0 : 1, bounded);
    const std::string before = dump(net.s.graph);
    EXPECT_EQ(shift_channels(net.s.graph, seen_of(net.s)), 0);
    EXPECT_EQ(dump(net.s.graph), before);
  }
}

TEST(ShiftChannels, NormalizationsGiveTheirBias) {
  Sketch s;
  const ValueId x = s.input({4, 6});
  LayerNormAttrs norm;
  norm.axis = 1;
  const ValueId y = s.emit(norm, {x, s.constant({6}, 0.5, 1), far_bias(s, 6)});
  s.output(s.emit(FullyConnectedAttrs{}, {y, s.constant({3, 6})}));
  Sketch after = s;
  EXPECT_EQ(shift_channels(after.graph, seen_of(s)), 1);
  expect_same(s, after.graph);
  EXPECT_LT(width(after, y), 8);
  EXPECT_EQ(shift_channels(after.graph, seen_of(after)), 0);  // nothing left to gain
}

}  // namespace
}  // namespace sinter::convert
