// Abs .. Classify.

#include <cmath>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

RoundAttrs round_attrs(RoundFn fn) {
  RoundAttrs a;
  a.fn = static_cast<int64_t>(fn);
  return a;
}

// f over noise in [low, high), float and double, against the C library in double.
template <class A, class F>
void expect_function(const A& attrs, double low, double high, F f) {
  const Tensor x = noise<float>({2, 3, 5}, low, high), d = noise<double>({31}, low, high);
  std::vector<float> y;
  for (const float v : x.values<float>()) y.push_back(static_cast<float>(f(static_cast<double>(v))));
  expect_near(run_op(attrs, {x})[0], tensor<float>({2, 3, 5}, y), 4e-7, 1e-38);
  std::vector<double> z;
  for (const double v : d.values<double>()) z.push_back(f(v));
  expect_near(run_op(attrs, {d})[0], tensor<double>({31}, z), 1e-15, 0);
}

TEST(Unary, AbsKeepsTheLowestInteger) {
  expect_equal(run_op(AbsAttrs{}, {tensor<float>({2, 2}, {1, -2, -0.f, -kInf})})[0],
               tensor<float>({2, 2}, {1, 2, 0, kInf}));
  expect_equal(run_op(AbsAttrs{}, {tensor<int8_t>({2, 1, 2}, {1, -128, 0, -3})})[0],
               tensor<int8_t>({2, 1, 2}, {1, -128, 0, 3}));
  expect_equal(run_op(AbsAttrs{}, {tensor<uint8_t>({2}, {1, 200})})[0], tensor<uint8_t>({2}, {1, 200}));
  expect_equal(run_op(AbsAttrs{}, {tensor<int8_t>({2, 0, 2}, {})})[0], tensor<int8_t>({2, 0, 2}, {}));
  expect_equal(run_op(AbsAttrs{}, {tensor<double>({}, {-2.5})})[0], tensor<double>({}, {2.5}));
}

TEST(Unary, NegWraps) {
  expect_equal(run_op(NegAttrs{}, {tensor<int32_t>({3}, {INT32_MIN, 5, 0})})[0],
               tensor<int32_t>({3}, {INT32_MIN, -5, 0}));
  expect_equal(run_op(NegAttrs{}, {tensor<uint16_t>({2}, {1, 0})})[0], tensor<uint16_t>({2}, {65535, 0}));
  expect_equal(run_op(NegAttrs{}, {tensor<float>({2}, {1.5f, kInf})})[0], tensor<float>({2}, {-1.5f, -kInf}));
}

TEST(Unary, SignOfNanIsNan) {
  expect_equal(run_op(SignAttrs{}, {tensor<float>({5}, {-3, -0.f, 0, 1e-40f, kNan})})[0],
               tensor<float>({5}, {-1, 0, 0, 1, kNan}));
  expect_equal(run_op(SignAttrs{}, {tensor<int64_t>({3}, {INT64_MIN, 0, 9})})[0],
               tensor<int64_t>({3}, {-1, 0, 1}));
  expect_equal(run_op(SignAttrs{}, {tensor<uint64_t>({2}, {0, UINT64_MAX})})[0],
               tensor<uint64_t>({2}, {0, 1}));
}

TEST(Unary, RoundIsHalfToEven) {
  const Tensor x = tensor<float>({7}, {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.4f, 1e10f});
  expect_equal(run_op(round_attrs(RoundFn::kNearestEven), {x})[0],
               tensor<float>({7}, {-2, -2, 0, 0, 2, 2, 1e10f}));
  expect_equal(run_op(round_attrs(RoundFn::kFloor), {x})[0],
               tensor<float>({7}, {-3, -2, -1, 0, 1, 2, 1e10f}));
  expect_equal(run_op(round_attrs(RoundFn::kCeil), {x})[0], tensor<float>({7}, {-2, -1, 0, 1, 2, 3, 1e10f}));
  expect_refused(round_attrs(static_cast<RoundFn>(3)), {x});
  expect_refused(round_attrs(static_cast<RoundFn>(-1)), {x});
  expect_refused(RoundAttrs{}, {tensor<int32_t>({1}, {1})});
}

TEST(Unary, Functions) {
  expect_function(SqrtAttrs{}, 0, 9, [](double x) { return std::sqrt(x); });
  expect_function(RsqrtAttrs{}, 0.1, 9, [](double x) { return 1 / std::sqrt(x); });
  expect_function(ExpAttrs{}, -20, 20, [](double x) { return std::exp(x); });
  expect_function(LogAttrs{}, 1e-3, 20, [](double x) { return std::log(x); });
  expect_function(ErfAttrs{}, -4, 4, [](double x) { return std::erf(x); });
}

TEST(Unary, Trig) {
  using F = double (*)(double);
  const F functions[] = {std::sin,  std::cos,  std::tan,   std::asin,  std::acos, std::atan,
                         std::sinh, std::cosh, std::asinh, std::acosh, std::atanh};
  for (int i = 0; i < 11; ++i) {
    TrigAttrs a;
    a.fn = i;
    expect_function(a, i == 9 ? 1 : -0.9, i == 9 ? 5 : 0.9, functions[i]);
  }
  TrigAttrs bad;
  bad.fn = 11;
  expect_refused(bad, {tensor<float>({1}, {1})});
}

// As bounds on the absolute error: beside multiples of pi / 2 the angle itself is rounded.
TEST(Unary, SinesOfAllAngles) {
  for (const bool cosine : {false, true}) {
    TrigAttrs a;
    a.fn = static_cast<int64_t>(cosine ? TrigFn::kCos : TrigFn::kSin);
    std::vector<float> x = {0, -0.f, 1e-30f, 8191.5f, 8192, 8192.5f, -8192, 1e6f, -1e20f};
    for (int i = -6000; i < 6000; ++i) x.push_back(static_cast<float>(i * 1.5707963267948966));
    for (const double most : {0.8, 100.0, 9000.0})
      for (const float v : noise<float>({5000}, -most, most).values<float>()) x.push_back(v);
    const auto size = static_cast<int64_t>(x.size());
    const Tensor y = run_op(a, {tensor<float>({size}, x)})[0];
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto v = static_cast<double>(x[i]);
      worst = std::max(
          worst, std::abs(static_cast<double>(y.values<float>()[i]) - (cosine ? std::cos(v) : std::sin(v))));
    }
    EXPECT_LT(worst, 1.2e-7) << (cosine ? "cosine" : "sine");
    expect_equal(run_op(a, {tensor<float>({5}, {kInf, -kInf, kNan, 0, -0.f})})[0],
                 cosine ? tensor<float>({5}, {kNan, kNan, kNan, 1, 1})
                        : tensor<float>({5}, {kNan, kNan, kNan, 0, -0.f}));
  }
}

TEST(Unary, SpecialValues) {
  expect_equal(run_op(SqrtAttrs{}, {tensor<float>({3}, {-1, -0.f, kInf})})[0],
               tensor<float>({3}, {kNan, -0.f, kInf}));
  expect_equal(run_op(LogAttrs{}, {tensor<float>({3}, {-1, 0, kInf})})[0],
               tensor<float>({3}, {kNan, -kInf, kInf}));
  expect_equal(run_op(RsqrtAttrs{}, {tensor<float>({2}, {0, kInf})})[0], tensor<float>({2}, {kInf, 0}));
  expect_equal(run_op(ExpAttrs{}, {tensor<float>({3}, {-kInf, 1000, kNan})})[0],
               tensor<float>({3}, {0, kInf, kNan}));
}

TEST(Unary, BitNot) {
  expect_equal(run_op(BitNotAttrs{}, {tensor<bool>({2}, {true, false})})[0],
               tensor<bool>({2}, {false, true}));
  expect_equal(run_op(BitNotAttrs{}, {tensor<int16_t>({2}, {0, 5})})[0], tensor<int16_t>({2}, {-1, -6}));
  expect_equal(run_op(BitNotAttrs{}, {tensor<uint64_t>({1}, {1})})[0],
               tensor<uint64_t>({1}, {UINT64_MAX - 1}));
  expect_refused(BitNotAttrs{}, {tensor<float>({1}, {1})});
}

TEST(Unary, BoolsAreAnythingButZero) {
  const Tensor odd = bits_tensor<uint8_t>(DType::kBool, {3}, {0, 2, 255});
  expect_equal(run_op(BitNotAttrs{}, {odd})[0], tensor<bool>({3}, {true, false, false}));
}

TEST(Unary, Classify) {
  const Tensor x = tensor<float>({4}, {kNan, kInf, -kInf, 1});
  ClassifyAttrs a;
  expect_equal(run_op(a, {x})[0], tensor<bool>({4}, {true, false, false, false}));
  a.mask = kClassifyPositiveInf | kClassifyNegativeInf;
  expect_equal(run_op(a, {x})[0], tensor<bool>({4}, {false, true, true, false}));
  a.mask = kClassifyNegativeInf;
  expect_equal(run_op(a, {x})[0], tensor<bool>({4}, {false, false, true, false}));
  expect_equal(run_op(a, {bits_tensor<uint16_t>(DType::kFloat16, {3}, {0xfc00, 0x7c00, 0x7e00})})[0],
               tensor<bool>({3}, {true, false, false}));
  expect_equal(run_op(a, {bits_tensor<uint16_t>(DType::kBFloat16, {3}, {0xff80, 0x7f80, 0x7fc0})})[0],
               tensor<bool>({3}, {true, false, false}));
  a.mask = 8;
  expect_refused(a, {x});
}

TEST(Unary, OtherTypesAreRefused) {
  expect_refused(ExpAttrs{}, {tensor<int32_t>({1}, {1})});
  expect_refused(AbsAttrs{}, {tensor<bool>({1}, {true})});
}

}  // namespace
}  // namespace sinter::test
