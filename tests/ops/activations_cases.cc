// Clamp .. Softplus.

#include <algorithm>
#include <cmath>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

// The naive formula in long double, over noise and the far ends.
template <class A, class F>
void expect_formula(const A& attrs, F f, double rtol = 6e-7) {
  std::vector<float> values = noise<float>({60}, -6, 6).values<float>();
  for (const float v : {-30.f, -12.f, -1e-6f, 0.f, 1e-6f, 12.f, 30.f, 80.f}) values.push_back(v);
  std::vector<float> want;
  for (const float v : values) want.push_back(static_cast<float>(f(static_cast<long double>(v))));
  const auto n = static_cast<int64_t>(values.size());
  expect_near(run_op(attrs, {tensor<float>({n}, values)})[0], tensor<float>({n}, want), rtol, 1e-30);
  const std::vector<double> wide(values.begin(), values.end());
  std::vector<double> exact;
  for (const double v : wide) exact.push_back(static_cast<double>(f(static_cast<long double>(v))));
  expect_near(run_op(attrs, {tensor<double>({2, n / 2}, wide)})[0], tensor<double>({2, n / 2}, exact), 1e-14,
              1e-30);
}

TEST(Activations, Clamp) {
  ClampAttrs a;
  a.min = -1, a.max = 6;
  expect_equal(run_op(a, {tensor<float>({5}, {-2, 0.5f, 7, kNan, -kInf})})[0],
               tensor<float>({5}, {-1, 0.5f, 6, kNan, -1}));
  expect_equal(run_op(a, {tensor<int32_t>({3}, {-2, 3, 7})})[0], tensor<int32_t>({3}, {-1, 3, 6}));
  expect_equal(run_op(a, {tensor<uint8_t>({3}, {0, 3, 7})})[0], tensor<uint8_t>({3}, {0, 3, 6}));
  a.min = 5, a.max = 2;
  expect_equal(run_op(a, {tensor<float>({2}, {0, 9})})[0], tensor<float>({2}, {2, 2}));
  const ClampAttrs open;
  expect_equal(run_op(open, {tensor<int64_t>({2}, {INT64_MIN, INT64_MAX})})[0],
               tensor<int64_t>({2}, {INT64_MIN, INT64_MAX}));
  a.min = std::nan("");
  expect_refused(a, {tensor<float>({1}, {1})});
}

TEST(Activations, Sigmoid) {
  expect_formula(SigmoidAttrs{}, [](long double x) { return 1 / (1 + std::exp(-x)); });
  expect_equal(run_op(SigmoidAttrs{}, {tensor<float>({3}, {-kInf, kInf, kNan})})[0],
               tensor<float>({3}, {0, 1, kNan}));
}
TEST(Activations, Tanh) {
  expect_formula(TanhAttrs{}, [](long double x) { return std::tanh(x); });
}
TEST(Activations, HardSigmoid) {
  expect_formula(HardSigmoidAttrs{}, [](long double x) {
    return std::min(1.0L, std::max(0.0L, static_cast<long double>(0.2) * x + 0.5L));
  });
  expect_equal(run_op(HardSigmoidAttrs{}, {tensor<float>({3}, {-kInf, kInf, kNan})})[0],
               tensor<float>({3}, {0, 1, kNan}));
}
TEST(Activations, HardSwish) {
  expect_formula(HardSwishAttrs{},
                 [](long double x) { return x * std::min(1.0L, std::max(0.0L, (x + 3) / 6)); });
}
TEST(Activations, GeluKeepsItsLeftTail) {
  expect_formula(
      GeluAttrs{}, [](long double x) { return x * std::erfc(-x * std::sqrt(0.5L)) / 2; }, 5e-5);
  GeluAttrs a;
  a.tanh_approximation = 1;
  const long double k = 2 * std::sqrt(2 / 3.141592653589793238462643L);
  const auto f = [k](long double x) {
    return x / (1 + std::exp(-k * (x + static_cast<long double>(0.044715) * x * x * x)));
  };
  expect_formula(a, f, 2e-4);
}
TEST(Activations, Silu) {
  expect_formula(SiluAttrs{}, [](long double x) { return x / (1 + std::exp(-x)); });
  SiluAttrs a;
  a.alpha = 1.5;
  expect_formula(
      a, [](long double x) { return x / (1 + std::exp(-1.5L * x)); }, 5e-6);
}
TEST(Activations, EluSeluCelu) {
  expect_formula(EluAttrs{}, [](long double x) { return x > 0 ? x : std::expm1(x); });
  EluAttrs a;
  a.alpha = 2, a.beta = 0.5, a.gamma = 3;
  expect_formula(a, [](long double x) { return x > 0 ? 3 * x : 6 * std::expm1(x / 2); });
}
TEST(Activations, LeakyRelu) {
  LeakyReluAttrs a;
  a.alpha = 0.25;
  expect_formula(a, [](long double x) { return x < 0 ? x / 4 : x; });
  expect_equal(run_op(a, {tensor<float>({2}, {kNan, -kInf})})[0], tensor<float>({2}, {kNan, -kInf}));
}
TEST(Activations, Softplus) {
  expect_formula(SoftplusAttrs{}, [](long double x) {
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  });
  expect_equal(run_op(SoftplusAttrs{}, {tensor<float>({3}, {1000, kInf, -kInf})})[0],
               tensor<float>({3}, {1000, kInf, 0}));
}

TEST(Activations, PReluBroadcastsItsSlope) {
  expect_equal(
      run_op(PReluAttrs{}, {tensor<float>({2, 2}, {-1, 2, -3, -4}), tensor<float>({2}, {0.5f, 2})})[0],
      tensor<float>({2, 2}, {-0.5f, 2, -1.5f, -8}));
  expect_equal(run_op(PReluAttrs{}, {tensor<int32_t>({3}, {-1, 2, -3}), tensor<int32_t>({}, {3})})[0],
               tensor<int32_t>({3}, {-3, 2, -9}));
  expect_equal(run_op(PReluAttrs{}, {tensor<float>({2}, {-1, 2}), tensor<float>({2}, {4, 5})})[0],
               tensor<float>({2}, {-4, 2}));
  expect_refused(PReluAttrs{}, {tensor<float>({2}, {1, 2}), tensor<float>({2, 1}, {1, 2})});
  expect_refused(PReluAttrs{}, {tensor<float>({1}, {1}), tensor<float>({2}, {1, 2})});
  expect_refused(PReluAttrs{}, {tensor<float>({1}, {1}), tensor<double>({1}, {1})});
}

}  // namespace
}  // namespace sinter::test
