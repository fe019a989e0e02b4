// Means that rounding shifted are what they were.
#include "converter/quantize/weights/bias_correction.h"

#include <gtest/gtest.h>

#include "converter/quantize/samples/sample_list.h"
#include "converter/quantize/weights/product_weights.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::Sketch;

// Weights lose what is below a step: all in one direction, as bad luck has it.
Graph coarse(const Graph& exact, double steps = 4) {
  Graph rounded = exact;
  for (Node& node : rounded.nodes) {
    const auto p = product_weights(rounded, node);
    if (!p) continue;
    std::vector<double> w = p->weights->as_doubles();
    for (double& item : w) item = std::floor(item * steps) / steps;
    set_weights(rounded, node, &w, nullptr);
  }
  return rounded;
}

std::vector<double> channel_means(const Graph& graph, const std::vector<Sample>& samples, ValueId id) {
  SampleList list(samples);
  const std::vector<ValueId> ids{id};
  const Observations seen = observe(graph, list, ids, {});
  std::vector<double> result;
  for (const Moments& m : seen.values.at(id).channels)
    result.push_back(m.sum / static_cast<double>(seen.values.at(id).channel_elements));
  return result;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double d = 0;
  for (size_t i = 0; i < a.size(); ++i) d = std::max(d, std::fabs(a[i] - b[i]));
  return d;
}

struct Net {
  Sketch s;
  std::vector<Sample> samples;
  std::vector<ValueId> results;

  Net() {
    const ValueId x = s.input({1, 5, 5, 3}, -1, 2);
    ConvAttrs conv;
    conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0}, conv.act_min = 0;
    results.push_back(s.emit(conv, {x, s.constant({8, 2, 2, 3}), s.constant({8})}));
    DepthwiseConvAttrs deep;
    deep.strides = {1, 1}, deep.dilations = {1, 1}, deep.pads = {0, 0, 0, 0}, deep.act_max = 1.5;
    results.push_back(s.emit(deep, {results.back(), s.constant({2, 2, 8})}));
    ConvTransposeAttrs up;
    up.strides = {2, 2}, up.dilations = {1, 1}, up.pads = {0, 0, 0, 0}, up.output_padding = {0, 0},
    up.group = 1;
    results.push_back(s.emit(up, {results.back(), s.constant({4, 2, 2, 8})}));
    results.push_back(s.emit(FullyConnectedAttrs{}, {results.back(), s.constant({6, 4}), s.constant({6})}));
    s.output(results.back());
    for (int i = 0; i < 8; ++i) samples.push_back({s.fill({1, 5, 5, 3}, -1, 2)});
  }
};

TEST(BiasCorrection, FromWeightsAndMeansOfInputs) {
  const Net net;
  const Graph& exact = net.s.graph;
  Graph rounded = coarse(exact);
  SampleList list(net.samples);
  const Observations seen = observe(exact, list, observable_values(exact), {});
  const double before = distance(channel_means(rounded, net.samples, net.results[0]),
                                 channel_means(exact, net.samples, net.results[0]));
  MeanCorrection correct(seen);
  EXPECT_EQ(correct(rounded, exact), 4);
  ASSERT_EQ(check(rounded), "");
  const auto after = channel_means(rounded, net.samples, net.results[0]);
  EXPECT_GT(before, 0.2);
  EXPECT_LT(distance(after, channel_means(exact, net.samples, net.results[0])), before / 4);
  EXPECT_EQ(correct(rounded, rounded), 0);
}

std::vector<std::vector<double>> biases(const Graph& graph) {
  std::vector<std::vector<double>> result;
  for (const Node& node : graph.nodes)
    if (const auto p = product_weights(graph, node); p && p->bias) result.push_back(p->bias->as_doubles());
  return result;
}

TEST(BiasCorrection, SameForWeightsThatItHasMet) {
  const Net net;
  const Graph& exact = net.s.graph;
  SampleList list(net.samples);
  const Observations seen = observe(exact, list, observable_values(exact), {});
  MeanCorrection correct(seen);
  const Graph coarser = coarse(exact), finer = coarse(exact, 16);
  for (const Graph* graph : {&coarser, &coarser, &finer, &coarser}) {
    Graph again = *graph, alone = *graph;
    EXPECT_EQ(correct(again, exact), 4);
    EXPECT_EQ(MeanCorrection(seen)(alone, exact), 4);
    EXPECT_EQ(biases(again), biases(alone));
    EXPECT_EQ(biases(again).size(), 4U);
  }
}

// The bound comes after the bias, so means before it are what has to be equal.
TEST(BiasCorrection, MeasuredProductAfterProduct) {
  const Net net;
  const Graph& exact = net.s.graph;
  Graph rounded = coarse(exact);
  EXPECT_EQ(correct_biases(rounded, exact, net.samples, {}), 4);
  ASSERT_EQ(check(rounded), "");
  const auto unbounded = [&](Graph graph, size_t i) {
    for (Node& node : graph.nodes)
      if (node.outputs[0] == net.results[i])
        std::visit(
            [](auto& a) {
              if constexpr (requires { a.act_min; }) a.act_min = -kInfinity, a.act_max = kInfinity;
            },
            node.attrs);
    return channel_means(graph, net.samples, net.results[i]);
  };
  for (size_t i = 0; i < net.results.size(); ++i) {
    const auto want = unbounded(exact, i), got = unbounded(rounded, i), bad = unbounded(coarse(exact), i);
    EXPECT_GT(distance(bad, want), 0.05) << i;
    EXPECT_LT(distance(got, want), distance(bad, want) / 8) << i;  // what may be chance stays
  }
}

}  // namespace
}  // namespace sinter::convert
