// Scales of channels change no result, take the shortest way around clamps, and balance the ranges for int8.
#include "converter/quantize/weights/equalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "converter/quantize/samples/sample_list.h"
#include "converter/quantize/weights/channel_scales.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::Sketch;

Observations seen_of(const Sketch& s) {
  SampleList samples(std::span<const Sample>(&s.feeds, 1));
  return observe(s.graph, samples, observable_values(s.graph), {});
}

// The results stay within float32's rounding of weights.
void expect_same(const Sketch& before, const Graph& after) {
  ASSERT_EQ(check(after), "") << dump(after);
  const auto want = testing::evaluate_graph(before.graph, before.feeds);
  const auto got = testing::evaluate_graph(after, before.feeds);
  for (size_t i = 0; i < want.size(); ++i) {
    double largest = 0;
    for (const double v : want[i]) largest = std::max(largest, std::fabs(v));
    ASSERT_GT(largest, 0);
    for (size_t k = 0; k < want[i].size(); ++k) ASSERT_NEAR(got[i][k], want[i][k], 1e-5 * largest);
  }
}

// Largest over smallest of the channels' largest values.
double unlikeness(const Sketch& s, ValueId id) {
  const Observations seen = seen_of(s);
  double least = HUGE_VAL, most = 0;
  for (const Moments& m : seen.values.at(id).channels) {
    const double size = std::max(-m.min, m.max);
    least = std::min(least, size), most = std::max(most, size);
  }
  return most / least;
}

// Rows of weights that differ by factors of up to 100.
ValueId unlike(Sketch& s, const Dims& dims, bool depthwise = false) {
  std::vector<double> w = s.fill(dims, -1, 1)->as_doubles();
  const auto rows = static_cast<size_t>(depthwise ? dims.back() : dims[0]);
  for (size_t i = 0; i < w.size(); ++i) {
    const size_t row = depthwise ? i % rows : i / (w.size() / rows);
    w[i] *= std::pow(100.0, static_cast<double>(row) / static_cast<double>(rows - 1) - 0.5);
  }
  return s.graph.add_constant(
      Constant::of<float>(DType::kFloat32, dims, std::vector<float>(w.begin(), w.end())));
}

ConvAttrs conv(const IntList& pads = {0, 0, 0, 0}) {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1};
  a.pads = pads;
  return a;
}
DepthwiseConvAttrs depthwise() {
  DepthwiseConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  return a;
}
ClampAttrs clamp(double low, double high) {
  ClampAttrs a;
  a.min = low, a.max = high;
  return a;
}

// Convolution, Relu, depthwise, activation, convolution, all with their biases.
struct Chain {
  Sketch s;
  ValueId first, second;
  explicit Chain(double high = kInfinity) {
    TransposeAttrs last;
    last.perm = {0, 2, 3, 1};
    const ValueId x = s.emit(last, {s.input({1, 4, 6, 6})});
    ConvAttrs a = conv();
    a.act_min = 0, a.act_max = high;
    first = s.emit(a, {x, unlike(s, {8, 1, 1, 4}), s.constant({8}, 0, 0.1)});
    DepthwiseConvAttrs d = depthwise();
    second = s.emit(d, {first, unlike(s, {3, 3, 8}, true), s.constant({8})});
    second = s.emit(LeakyReluAttrs{}, {second});
    s.output(s.emit(conv(), {second, s.constant({5, 1, 1, 8}), s.constant({5})}));
  }
};

TEST(Equalize, ChainsThroughDepthwiseConvolutions) {
  Chain net;
  Sketch after = net.s;
  const double first = unlikeness(net.s, net.first), second = unlikeness(net.s, net.second);
  EXPECT_GE(equalize(after.graph, seen_of(net.s)), 14);  // the largest may stay
  expect_same(net.s, after.graph);
  EXPECT_GT(first, 50);
  EXPECT_GT(second, 50);
  EXPECT_LT(unlikeness(after, net.first), 4);
  EXPECT_LT(unlikeness(after, net.second), second / 10);
}

TEST(Equalize, BeforeDepthwiseOnlyWhatTheseRead) {
  Chain net;
  Sketch after = net.s;
  const double second = unlikeness(net.s, net.second);
  EXPECT_EQ(scale_before_depthwise(after.graph, seen_of(net.s)), 7);  // the largest stays
  expect_same(net.s, after.graph);
  EXPECT_LT(unlikeness(after, net.first), 2.501);  // 36 numbers of one sample need headroom
  EXPECT_NEAR(unlikeness(after, net.second), second, 1e-3 * second);
}

TEST(Equalize, ChannelsAtABoundKeepTheirScale) {
  Chain net(6);
  Sketch after = net.s;
  const Observations seen = seen_of(net.s);
  EXPECT_GT(equalize(after.graph, seen), 0);
  expect_same(net.s, after.graph);
  const auto& before = seen.values.at(net.first).channels;
  const Observations now = seen_of(after);
  int at_bound = 0, enlarged = 0;
  for (size_t c = 0; c < before.size(); ++c) {
    const float max = now.values.at(net.first).channels[c].max;
    if (before[c].max * 1.25 >= 6) {
      ++at_bound;
      EXPECT_NEAR(max, before[c].max, 1e-5);
    }
    if (max > before[c].max * 1.01) {
      ++enlarged;
      EXPECT_LE(max, 6 / 1.249);
    }
  }
  EXPECT_GT(at_bound, 0);
  EXPECT_GT(enlarged, 2);
}

TEST(Equalize, PublicValuesAndOtherFunctionsEndAChain) {
  Sketch s;
  const ValueId x = s.input({1, 4, 4, 4});
  const ValueId a = s.emit(conv(), {x, unlike(s, {8, 1, 1, 4})});
  const ValueId b = s.emit(SigmoidAttrs{}, {s.emit(conv(), {a, s.constant({8, 1, 1, 8})})});
  s.output(a, "a");
  s.output(s.emit(conv(), {b, s.constant({3, 1, 1, 8})}), "b");
  const Graph before = s.graph;
  EXPECT_EQ(equalize(s.graph, seen_of(s)), 0);
  EXPECT_EQ(dump(s.graph), dump(before));
}

TEST(Equalize, OutliersOfNormalizationsGoIntoTheWeights) {
  for (const bool rms : {false, true}) {
    Sketch s;
    const ValueId x = s.input({1, 5, 16});
    std::vector<float> gamma(16, 1);
    gamma[3] = 50, gamma[9] = -30;
    const ValueId scale = s.graph.add_constant(Constant::of<float>(DType::kFloat32, {16}, gamma));
    LayerNormAttrs layer;
    layer.axis = 2;
    RmsNormAttrs root;
    root.axis = 2;
    const ValueId y = rms ? s.emit(root, {x, scale}) : s.emit(layer, {x, scale, s.constant({16})});
    // All readers take the scale.
    s.output(s.emit(FullyConnectedAttrs{}, {y, s.constant({7, 16}), s.constant({7})}), "a");
    s.output(s.emit(FullyConnectedAttrs{}, {y, s.constant({3, 16})}), "b");
    const double unscaled = unlikeness(s, y);
    EXPECT_GT(unscaled, 30);
    Sketch all = s, half = s;
    EXPECT_GT(smooth(all.graph, seen_of(s), 1), 8);
    expect_same(s, all.graph);
    EXPECT_LT(unlikeness(all, y), 3.7);  // five numbers need headroom
    EXPECT_GT(smooth(half.graph, seen_of(s), 0.5), 8);
    expect_same(s, half.graph);
    EXPECT_LT(unlikeness(half, y), unscaled / 3);
    EXPECT_EQ(equalize(s.graph, seen_of(s)), 0);
  }
}

// Everything that scales pass through, in one network.
Sketch zoo() {
  Sketch s;
  const ValueId x = s.input({1, 8, 8, 4});
  ConvAttrs grouped = conv({1, 1, 1, 1});
  grouped.group = 2;
  ValueId a = s.emit(conv({1, 1, 1, 1}), {x, unlike(s, {8, 3, 3, 4}), s.constant({8})});
  a = s.emit(PReluAttrs{}, {a, s.constant({8})});
  a = s.emit(grouped, {a, unlike(s, {8, 3, 3, 4}), s.constant({8})});
  ValueId b = s.emit(conv({1, 1, 1, 1}), {x, unlike(s, {8, 3, 3, 4})});
  AddAttrs residual;
  residual.act_min = 0;
  ValueId c = s.emit(residual, {a, b});
  c = s.emit(AddAttrs{}, {c, s.constant({8})});
  c = s.emit(SubAttrs{}, {s.constant({1, 8, 1, 8}), c});
  c = s.emit(MulAttrs{}, {c, s.constant({8}, 0.5, 1)});
  ReduceAttrs mean;
  mean.fn = static_cast<int64_t>(ReduceFn::kMean), mean.axes = {1, 2}, mean.keepdims = 1;
  const ValueId gate =
      s.emit(SigmoidAttrs{}, {s.emit(FullyConnectedAttrs{}, {s.emit(mean, {c}), s.constant({8, 8})})});
  c = s.emit(MulAttrs{}, {gate, c});
  MaxPoolAttrs pool;
  pool.kernel = {2, 2}, pool.strides = {2, 2}, pool.dilations = {1, 1}, pool.pads = {0, 0, 0, 0};
  AvgPoolAttrs average;
  average.kernel = {2, 2}, average.strides = {2, 2}, average.dilations = {1, 1}, average.pads = {0, 0, 0, 0};
  ConcatAttrs join;
  join.axis = 3;
  ValueId d =
      s.emit(join, {s.emit(pool, {c}), s.emit(average, {c}), s.emit(AbsAttrs{}, {s.emit(pool, {b})})});
  SliceAttrs odd;
  odd.starts = {0, 0, 0, 1}, odd.steps = {1, 1, 1, 2}, odd.sizes = {1, 4, 4, 12};
  d = s.emit(odd, {d});
  PadAttrs pad;
  pad.pads = {0, 1, 0, 0, 0, 0, 1, 0};
  d = s.emit(pad, {d});
  d = s.emit(clamp(-40, 300), {d});
  ConvTransposeAttrs up;
  up.strides = {2, 2}, up.dilations = {1, 1}, up.pads = {0, 0, 0, 0}, up.output_padding = {0, 0},
  up.group = 2;
  ValueId e = s.emit(up, {d, unlike(s, {6, 2, 2, 6}), s.constant({6})});
  e = s.emit(MaxAttrs{}, {e, s.scalar(0)});
  DepthwiseConvAttrs twice = depthwise();
  e = s.emit(twice, {e, unlike(s, {3, 3, 12}, true), s.constant({12})});
  e = s.emit(clamp(0, 1000), {e});
  TransposeAttrs first;
  first.perm = {0, 3, 1, 2};
  ValueId f = s.emit(first, {e});
  f = s.emit(ClampAttrs(clamp(0, kInfinity)), {f});
  TransposeAttrs last;
  last.perm = {0, 2, 3, 1};
  f = s.emit(last, {f});
  ViewAttrs flat;
  flat.dims = {1, 10 * 10 * 12};
  f = s.emit(flat, {f});
  s.output(s.emit(FullyConnectedAttrs{}, {f, s.constant({3, 1200}), s.constant({3})}), "classes");
  // Values of an attention: heads of tokens.
  ViewAttrs rows;
  rows.dims = {64, 8};
  const ValueId tokens = s.emit(rows, {c});
  ViewAttrs heads;
  heads.dims = {1, 64, 2, 4};
  TransposeAttrs swap;
  swap.perm = {0, 2, 1, 3};
  std::vector<ValueId> qkv;
  for (int i = 0; i < 3; ++i) {
    const ValueId p = s.emit(FullyConnectedAttrs{}, {tokens, unlike(s, {8, 8}), s.constant({8})});
    qkv.push_back(s.emit(swap, {s.emit(heads, {p})}));
  }
  ViewAttrs together;
  together.dims = {64, 8};
  const ValueId mixed = s.emit(AttentionAttrs{}, qkv);
  const ValueId out = s.emit(together, {s.emit(swap, {mixed})});
  s.output(s.emit(FullyConnectedAttrs{}, {out, s.constant({5, 8}), s.constant({5})}), "tokens");
  return s;
}

TEST(Equalize, AnyScalesWithinTheLimitsChangeNothing) {
  const Sketch s = zoo();
  const ChannelScales channels(s.graph, seen_of(s));
  std::mt19937 random(1);
  for (int round = 0; round < 5; ++round) {
    std::vector<double> scales;
    int changed = 0;
    for (const auto& group : channels.groups()) {
      const double any = std::exp(std::uniform_real_distribution<double>(-3, 3)(random));
      scales.push_back(std::clamp(any, group.least, group.most));
      changed += scales.back() != 1 ? 1 : 0;
    }
    EXPECT_GT(changed, 40);
    Graph after = s.graph;
    channels.apply(after, scales);
    expect_same(s, after);
  }
}

TEST(Equalize, AllAtOnceChangesNothing) {
  const Sketch s = zoo();
  Sketch after = s;
  EXPECT_GT(equalize(after.graph, seen_of(after)), 0);
  scale_before_depthwise(after.graph, seen_of(after));
  EXPECT_GT(smooth(after.graph, seen_of(after), 0.5), 0);
  expect_same(s, after.graph);
}

}  // namespace
}  // namespace sinter::convert
