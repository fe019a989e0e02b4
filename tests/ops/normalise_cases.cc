// Softmax, LayerNorm, RmsNorm, GroupNorm, Lrn.

#include <cmath>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

TEST(Softmax, AnyAxis) {
  const Tensor x = noise<float>({3, 4, 5}, -5, 5);
  const auto v = x.values<float>();
  for (int64_t axis = 0; axis < 3; ++axis) {
    const int64_t n = x.dims[static_cast<size_t>(axis)], step = axis == 0 ? 20 : axis == 1 ? 5 : 1;
    std::vector<float> want(60), logs(60);
    for (int64_t i = 0; i < 60; ++i) {
      const int64_t first = i - i / step % n * step;
      double sum = 0;
      for (int64_t k = 0; k < n; ++k)
        sum += std::exp(static_cast<double>(v[static_cast<size_t>(first + k * step)]));
      want[static_cast<size_t>(i)] =
          static_cast<float>(std::exp(static_cast<double>(v[static_cast<size_t>(i)])) / sum);
      logs[static_cast<size_t>(i)] =
          static_cast<float>(static_cast<double>(v[static_cast<size_t>(i)]) - std::log(sum));
    }
    SoftmaxAttrs a;
    a.axis = axis;
    expect_near(run_op(a, {x})[0], tensor<float>({3, 4, 5}, want), 5e-7);
    a.log = 1;
    expect_near(run_op(a, {x})[0], tensor<float>({3, 4, 5}, logs), 5e-7);
  }
}

TEST(Softmax, Extremes) {
  SoftmaxAttrs a;
  expect_equal(run_op(a, {tensor<float>({3}, {1e30f, -1e30f, 1e30f})})[0],
               tensor<float>({3}, {0.5f, 0, 0.5f}));
  expect_equal(run_op(a, {tensor<float>({2}, {-kInf, 0})})[0], tensor<float>({2}, {0, 1}));
  expect_equal(run_op(a, {tensor<float>({2}, {kNan, 0})})[0], tensor<float>({2}, {kNan, kNan}));
  expect_equal(run_op(a, {tensor<float>({2}, {-kInf, -kInf})})[0], tensor<float>({2}, {kNan, kNan}));
  expect_equal(run_op(a, {tensor<float>({0, 2}, {})})[0], tensor<float>({0, 2}, {}));
  a.axis = 1;
  expect_equal(run_op(a, {tensor<float>({2, 0}, {})})[0], tensor<float>({2, 0}, {}));
  a.log = 1;
  expect_equal(run_op(a, {tensor<double>({1, 2}, {-1e300, 0})})[0], tensor<double>({1, 2}, {-1e300, 0}));
  expect_refused(a, {tensor<float>({2}, {1, 2})});
  expect_refused(a, {tensor<int32_t>({2, 2}, {1, 2, 3, 4})});
  a.axis = -1;
  expect_refused(a, {tensor<float>({2}, {1, 2})});
}

TEST(LayerNorm, WithStatistics) {
  const Tensor x = tensor<float>({2, 4}, {1, 2, 3, 4, -10, 0, 0, 10});
  const Tensor scale = tensor<float>({4}, {1, 2, 1, 1}), bias = tensor<float>({4}, {0, 0, 1, 0});
  LayerNormAttrs a;
  a.axis = 1, a.epsilon = 0;
  RunOptions all;
  all.outputs = 3;
  const auto y = run_op(a, {x, scale, bias}, all);
  const float u = 1 / std::sqrt(1.25f), w = 1 / std::sqrt(50.f);
  expect_near(y[0], tensor<float>({2, 4}, {-1.5f * u, -u, 0.5f * u + 1, 1.5f * u, -10 * w, 0, 1, 10 * w}));
  expect_near(y[1], tensor<float>({2, 1}, {2.5f, 0}));
  expect_near(y[2], tensor<float>({2, 1}, {u, w}));
  all.unwanted = {1};
  const auto without = run_op(a, {x, scale, bias}, all);
  EXPECT_EQ(without[0].bytes, y[0].bytes);
  EXPECT_EQ(without[2].bytes, y[2].bytes);
  expect_near(run_op(a, {x, tensor<float>({}, {2})})[0],
              tensor<float>({2, 4}, {-3 * u, -u, u, 3 * u, -20 * w, 0, 0, 20 * w}));
}

TEST(LayerNorm, OverSeveralAxesAndWithBroadcastParameters) {
  const Tensor x = noise<double>({2, 3, 4}, -2, 2);
  const auto v = x.values<double>();
  const Tensor scale = tensor<double>({3, 1}, {1, 2, 3}), bias = iota<double>({2, 1, 1}, 5);
  LayerNormAttrs a;
  a.axis = 1;
  std::vector<double> want;
  for (size_t n = 0; n < 2; ++n) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < 12; ++i) mean += v[n * 12 + i] / 12;
    for (size_t i = 0; i < 12; ++i) variance += (v[n * 12 + i] - mean) * (v[n * 12 + i] - mean) / 12;
    for (size_t i = 0; i < 12; ++i)
      want.push_back((v[n * 12 + i] - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(i / 4 + 1) +
                     static_cast<double>(5 + n));
  }
  expect_near(run_op(a, {x, scale, bias})[0], tensor<double>({2, 3, 4}, want), 1e-13);
  RunOptions all;
  all.outputs = 3;
  const auto empty = run_op(a, {tensor<float>({2, 0}, {}), tensor<float>({0}, {})}, all);
  EXPECT_EQ(empty[1].dims, (Shape{2, 1}));
}

TEST(LayerNorm, Refuses) {
  LayerNormAttrs a;
  a.axis = 1;
  expect_refused(a, {iota<float>({2, 4}), iota<float>({3})});
  expect_refused(a, {iota<float>({2, 4}), iota<float>({2, 2, 4})});
  expect_refused(a, {iota<float>({2, 4}), iota<double>({4})});
  a.axis = 2;
  expect_refused(a, {iota<float>({2, 4}), iota<float>({4})});
  a.axis = 1, a.epsilon = -1;
  expect_refused(a, {iota<float>({2, 4}), iota<float>({4})});
}

TEST(RmsNorm, Formula) {
  RmsNormAttrs a;
  a.axis = 1, a.epsilon = 0;
  const float r = 1 / std::sqrt(12.5f);
  expect_near(run_op(a, {tensor<float>({1, 2}, {3, 4}), tensor<float>({2}, {1, 2})})[0],
              tensor<float>({1, 2}, {3 * r, 8 * r}));
  a.axis = 0;
  expect_near(run_op(a, {tensor<float>({1, 2}, {3, 4}), tensor<float>({1, 2}, {1, 2})})[0],
              tensor<float>({1, 2}, {3 * r, 8 * r}));
}

TEST(GroupNorm, GroupsAndInstances) {
  const Tensor x = noise<float>({2, 3, 4, 6}, -3, 5), scale = noise<float>({6}, 0.5, 2, 7),
               bias = noise<float>({6}, -1, 1, 9);
  const auto v = x.values<float>(), s = scale.values<float>(), b = bias.values<float>();
  for (const int64_t groups : {1, 2, 6}) {
    GroupNormAttrs a;
    a.groups = groups;
    const size_t width = static_cast<size_t>(6 / groups);
    std::vector<float> want(v.size());
    for (size_t n = 0; n < 2; ++n)
      for (size_t g = 0; g < static_cast<size_t>(groups); ++g) {
        double mean = 0, variance = 0;
        const double count = 12.0 * static_cast<double>(width);
        const auto at = [&](size_t p, size_t c) { return (n * 12 + p) * 6 + g * width + c; };
        for (size_t p = 0; p < 12; ++p)
          for (size_t c = 0; c < width; ++c) mean += static_cast<double>(v[at(p, c)]) / count;
        for (size_t p = 0; p < 12; ++p)
          for (size_t c = 0; c < width; ++c)
            variance += std::pow(static_cast<double>(v[at(p, c)]) - mean, 2) / count;
        for (size_t p = 0; p < 12; ++p)
          for (size_t c = 0; c < width; ++c)
            want[at(p, c)] =
                static_cast<float>((static_cast<double>(v[at(p, c)]) - mean) / std::sqrt(variance + 1e-5) *
                                       static_cast<double>(s[g * width + c]) +
                                   static_cast<double>(b[g * width + c]));
      }
    expect_near(run_op(a, {x, scale, bias})[0], tensor<float>({2, 3, 4, 6}, want), 1e-6, 1e-6);
  }
  GroupNormAttrs a;
  a.groups = 4;
  expect_refused(a, {x, scale, bias});
  a.groups = 0;
  expect_refused(a, {x, scale, bias});
  a.groups = 2;
  expect_refused(a, {x, scale, iota<float>({5})});
  expect_refused(a, {iota<float>({6}), scale, bias});
  expect_equal(run_op(a, {tensor<float>({2, 0, 6}, {}), scale, bias})[0], tensor<float>({2, 0, 6}, {}));
}

TEST(Lrn, WindowOverChannels) {
  LrnAttrs a;
  a.size = 3, a.alpha = 3, a.beta = 1, a.bias = 1;
  expect_near(run_op(a, {tensor<float>({1, 1, 4}, {1, 2, 3, 4})})[0],
              tensor<float>({1, 1, 4}, {1.f / 6, 2.f / 15, 3.f / 30, 4.f / 26}));
  a.size = 2, a.alpha = 2;  // an even window reaches further to the right
  expect_near(run_op(a, {tensor<double>({1, 3}, {1, 2, 3})})[0],
              tensor<double>({1, 3}, {1. / 6, 2. / 14, 3. / 10}));
  a.size = INT64_MAX, a.alpha = 0;
  expect_equal(run_op(a, {tensor<float>({1, 2}, {1, 2})})[0], tensor<float>({1, 2}, {1, 2}));
  a.size = 0;
  expect_refused(a, {tensor<float>({1, 2}, {1, 2})});
}

}  // namespace
}  // namespace sinter::test
