// Rounded weights are multiples of a scale, which nothing rounds again, and give less error than the nearest
// ones.
#include "converter/quantize/weights/adaptive_rounding.h"

#include <gtest/gtest.h>

#include <random>

#include "converter/ir/integer_weights.h"
#include "converter/quantize/samples/sample_list.h"
#include "converter/quantize/weights/product_inputs.h"
#include "converter/quantize/weights/product_weights.h"
#include "converter/quantize/weights/weight_rounding.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {
namespace {

using testing::Sketch;

// Returns the integers of one row.
std::vector<int> round_row(const WeightRounding& rounding, const std::vector<double>& w, double step) {
  return rounding.round(w, std::span(&step, 1));
}

TEST(WeightRounding, MakesUpForErrorsWhereInputsVaryTogether) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  const int64_t n = 24;
  // Inputs with three common causes.
  std::vector<double> h(static_cast<size_t>(n * n), 0.0), directions(static_cast<size_t>(3 * n));
  for (double& d : directions) d = normal(random);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t k = 0; k < 3; ++k)
        h[static_cast<size_t>(i * n + j)] +=
            directions[static_cast<size_t>(k * n + i)] * directions[static_cast<size_t>(k * n + j)];
  const WeightRounding rounding(h, n, 0.01);
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += h[static_cast<size_t>(i * n + i)] / static_cast<double>(n);
  // The quadratic form of what these integers leave of the weights.
  const auto error = [&](const std::vector<double>& w, double step, const std::vector<int>& q) {
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i)
      for (size_t j = 0; j < w.size(); ++j)
        sum +=
            (w[i] - q[i] * step) * (h[i * w.size() + j] + (i == j ? 0.01 * mean : 0)) * (w[j] - q[j] * step);
    return sum;
  };
  double better = 0, plain = 0;
  for (int row = 0; row < 16; ++row) {
    std::vector<double> w(static_cast<size_t>(n));
    std::vector<int> nearest;
    for (double& item : w) item = std::clamp(normal(random), -3.0, 3.0);
    const double step = 3.0 / 127;
    for (const double item : w) nearest.push_back(static_cast<int>(std::nearbyint(item / step)));
    const std::vector<int> q = round_row(rounding, w, step);
    for (const int item : q) EXPECT_LE(std::abs(item), 127);
    const double own = error(w, step, q), other = error(w, step, nearest);
    EXPECT_LE(own, other);
    better += own, plain += other;
  }
  EXPECT_LT(better, plain / 4);
}

TEST(WeightRounding, NothingToGoBy) {
  const WeightRounding rounding(std::vector<double>(9, 0.0), 3, 0.01);
  const std::vector<double> w = {1, -0.5, 0.26};
  EXPECT_EQ(round_row(rounding, w, 0.01), (std::vector<int>{100, -50, 26}));
  EXPECT_EQ(round_row(rounding, w, 0), (std::vector<int>{0, 0, 0}));
}

TEST(WeightRounding, StepsCutWhatHardlyCounts) {
  std::vector<double> w(200), importance(200, 1);
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::sin(static_cast<double>(i) * 12.9898);
  w[7] = 3;
  importance[7] = 1e-6;
  EXPECT_LT(best_step(w, importance), 1.7 / 127);
  importance[7] = 1e6;
  EXPECT_DOUBLE_EQ(best_step(w, importance), 3.0 / 127);
  EXPECT_EQ(best_step(std::vector<double>(4, 0.0), std::vector<double>(4, 1.0)), 0);
}

// One product of each kind, with samples whose values vary together.
struct Product {
  Sketch s;
  std::vector<Sample> samples;

  Product(const OpAttrs& attrs, const Dims& x, const Dims& w, int64_t rows) {
    s.output(s.emit(attrs, {s.input(x), s.constant(w, -0.4, 1), s.constant({rows})}));
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int i = 0; i < 12; ++i) {
      std::vector<float> items(static_cast<size_t>(element_count(x)));
      const auto channels = static_cast<size_t>(x.back());
      float common = 0;
      for (size_t k = 0; k < items.size(); ++k) {
        if (k % channels == 0) common = normal(random);
        items[k] = 1 + common + 0.2f * normal(random);
      }
      samples.push_back({Constant::of<float>(DType::kFloat32, x, items)});
    }
  }
  // Mean square distance to the exact results.
  double distance(const Graph& other) const {
    double total = 0;
    for (const Sample& sample : samples) {
      const auto a = testing::evaluate_graph(s.graph, sample), b = testing::evaluate_graph(other, sample);
      for (size_t i = 0; i < a[0].size(); ++i) total += (a[0][i] - b[0][i]) * (a[0][i] - b[0][i]);
    }
    return total;
  }
  Graph nearest() const {
    Graph graph = s.graph;
    const auto p = product_weights(graph, graph.nodes[0]);
    std::vector<double> w = p->weights->as_doubles();
    std::vector<double> largest(static_cast<size_t>(p->rows), 0);
    p->for_each([&](int64_t i, int64_t row, int64_t) {
      double& l = largest[static_cast<size_t>(row)];
      l = std::max(l, std::fabs(w[static_cast<size_t>(i)]));
    });
    p->for_each([&](int64_t i, int64_t row, int64_t) {
      const double step = largest[static_cast<size_t>(row)] / 127;
      w[static_cast<size_t>(i)] = std::nearbyint(w[static_cast<size_t>(i)] / step) * step;
    });
    set_weights(graph, graph.nodes[0], &w, nullptr);
    return graph;
  }
};

template <class A>
A windowed(int64_t stride) {
  A a;
  a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  return a;
}

void expect_better(const Product& net, double factor, int64_t most_inputs = 1024) {
  Graph rounded = net.s.graph;
  AdaptiveRoundingOptions options;
  options.most_inputs = most_inputs;
  EXPECT_EQ(round_adaptively(rounded, net.samples, options), 1);
  ASSERT_EQ(check(rounded), "");
  const auto p = product_weights(rounded, rounded.nodes[0]);
  const auto q = integer_weights(p->weights, p->axis);
  ASSERT_TRUE(q != nullptr);
  EXPECT_FALSE(q->wide);
  EXPECT_TRUE(q->zeros.empty());
  EXPECT_LT(net.distance(rounded), factor * net.distance(net.nearest())) << dump(net.s.graph);
}

TEST(AdaptiveRounding, EveryKindOfProduct) {
  expect_better({FullyConnectedAttrs{}, {20, 16}, {6, 16}, 6}, 0.25);
  expect_better({windowed<ConvAttrs>(1), {1, 6, 6, 4}, {8, 3, 3, 4}, 8}, 0.25);
  ConvAttrs grouped = windowed<ConvAttrs>(2);
  grouped.group = 2;
  expect_better({grouped, {1, 8, 8, 4}, {8, 3, 3, 2}, 8}, 0.5);
  expect_better({windowed<DepthwiseConvAttrs>(1), {1, 6, 6, 4}, {3, 3, 8}, 8}, 0.9);  // taps vary apart
  ConvTransposeAttrs up = windowed<ConvTransposeAttrs>(2);
  up.group = 1, up.output_padding = {0, 0};
  expect_better({up, {1, 5, 5, 4}, {6, 3, 3, 4}, 6}, 0.5);
}

TEST(AdaptiveRounding, LongRowsInParts) {
  expect_better({windowed<ConvAttrs>(1), {1, 6, 6, 4}, {8, 3, 3, 4}, 8}, 0.5, 10);
}

TEST(AdaptiveRounding, CostGrowsWithTheSquareOfRows) {
  const Product small(FullyConnectedAttrs{}, {20, 64}, {6, 64}, 6);
  const Product large(FullyConnectedAttrs{}, {20, 640}, {6, 640}, 6);
  const double a = adaptive_rounding_cost(small.s.graph), b = adaptive_rounding_cost(large.s.graph);
  EXPECT_GT(b, 100 * a);
  EXPECT_GT(a, 64 * 64 * 200);
}

TEST(AdaptiveRounding, ChosenWeightsAreIntegersOfTheirScale) {
  Sketch s;
  const ValueId x = s.input({8, 32});
  std::vector<double> w = s.fill({4, 32}, -1, 1)->as_doubles();
  w[5] = 4;  // its input is nearly nothing
  std::vector<float> narrow(w.begin(), w.end());
  const ValueId weights = s.graph.add_constant(Constant::of<float>(DType::kFloat32, {4, 32}, narrow));
  s.output(s.emit(FullyConnectedAttrs{}, {x, weights}));
  std::vector<float> items = std::vector<float>(8 * 32, 0.0f);
  for (size_t i = 0; i < items.size(); ++i) items[i] = i % 32 == 5 ? 1e-4f : std::sin(static_cast<float>(i));
  const std::vector<Sample> samples = {{Constant::of<float>(DType::kFloat32, {8, 32}, items)}};
  SampleList list(samples);
  const Observations seen = observe(s.graph, list, observable_values(s.graph), {});
  EXPECT_EQ(choose_weight_steps(s.graph, seen), 1);
  const auto q = integer_weights(product_weights(s.graph, s.graph.nodes[0])->weights, 0);
  // Rows without such a weight keep what they have.
  EXPECT_EQ(q, nullptr);
  const std::vector<double> now = product_weights(s.graph, s.graph.nodes[0])->weights->as_doubles();
  EXPECT_LT(now[5], 2.5);
  EXPECT_GE(whole_steps({now.begin(), now.begin() + 32}, now[5]), 1);
  EXPECT_EQ(std::vector<float>(now.begin() + 32, now.end()),
            std::vector<float>(narrow.begin() + 32, narrow.end()));
}

}  // namespace
}  // namespace sinter::convert
