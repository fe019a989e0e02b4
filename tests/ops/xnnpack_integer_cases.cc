// XNNPACK's integer products give the reference kernels' bits.
#include <cmath>
#include <random>

#include "platforms/xnnpack/platform.h"
#include "sinter/thread_pool.h"
#include "tests/op_harness/xnnpack_test.h"
#include "tests/ops/quantized_test.h"

namespace sinter::test {
namespace {

using quantized::Operands;

Operands operands(const Shape& x, const Shape& w, int64_t columns, double sum, uint64_t seed) {
  return quantized::operands<int8_t>(x, w, columns, sum, seed);
}

// false: the backend refuses it.
template <class A>
bool check_bits(const A& attrs, const Operands& o) {
  const xnn::Case c{o.tensors()};
  static PthreadPool pool(3);
  Tensor one, three;
  if (!xnn::run_step(attrs, c, nullptr, &one)) return false;
  EXPECT_TRUE(xnn::run_step(attrs, c, &pool, &three));
  EXPECT_EQ(one.bytes, three.bytes) << "threads change the result";
  expect_equal(one, run_op(attrs, o.tensors())[0]);
  return true;
}

TEST(XnnpackIntegers, Conv) {
  std::mt19937 random(7);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (uint64_t round = 0; round < 60; ++round) {
    QConvAttrs a{};
    a.group = pick(0, 3) == 0 ? 2 : 1;
    const int64_t kh = pick(1, 4), kw = pick(1, 4), ic = pick(1, 40), oc = a.group * pick(1, 40);
    a.strides = {pick(1, 2), pick(1, 2)}, a.dilations = {pick(1, 2), pick(1, 2)};
    a.pads = {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)};
    a.x_zero = pick(-128, 127), a.y_zero = pick(-128, 127), a.q_min = pick(-128, -20), a.q_max = pick(0, 127);
    const Operands o = operands({pick(1, 2), pick(7, 12), pick(7, 12), ic * a.group}, {oc, kh, kw, ic}, oc,
                                60 * std::sqrt(static_cast<double>(kh * kw * ic)) * 60, round);
    EXPECT_TRUE(check_bits(a, o)) << round;
  }
}

TEST(XnnpackIntegers, DepthwiseConv) {
  for (const int64_t kernel : {1, 3, 5, 7})
    for (const int64_t channels : {1, 3, 16, 37, 64})
      for (const int64_t multiplier : {1, 2}) {
        QDepthwiseConvAttrs a{};
        a.strides = {1, kernel > 3 ? 2 : 1}, a.dilations = {1, 1},
        a.pads = {kernel / 2, 0, kernel / 2, kernel / 2};
        a.x_zero = 127, a.y_zero = -100, a.q_min = -100;
        EXPECT_TRUE(check_bits(a, operands({1, 9, 9, channels}, {kernel, kernel, channels * multiplier},
                                           channels * multiplier, 3000.0 * static_cast<double>(kernel), 5)));
      }
}

TEST(XnnpackIntegers, ConvTranspose) {
  for (const int64_t stride : {1, 2, 3})
    for (const int64_t kernel : {2, 3, 5}) {
      QConvTransposeAttrs a{};
      a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {1, 0, 0, 1},
      a.output_padding = {stride - 1, 0};
      a.x_zero = -128, a.y_zero = 5;
      EXPECT_TRUE(check_bits(a, operands({1, 5, 6, 19}, {11, kernel, kernel, 19}, 11, 20000, 5)));
    }
}

TEST(XnnpackIntegers, FullyConnected) {
  for (const int64_t k : {1, 3, 8, 64, 300})
    for (const int64_t n : {1, 7, 16, 100}) {
      QFullyConnectedAttrs a{};
      a.x_zero = 3, a.y_zero = -7, a.q_max = 100;
      EXPECT_TRUE(check_bits(a, operands({5, k}, {n, k}, n, 4000 * std::sqrt(static_cast<double>(k)), 5)));
    }
}

// Every rounding case: sums of 0 to 65535 by the multipliers of 1/2, 1/3, ... with both signs.
TEST(XnnpackIntegers, RoundsHalvesToEven) {
  QFullyConnectedAttrs a{};
  Operands o;
  std::vector<int8_t> x, w;
  for (int i = -127; i <= 127; ++i) x.push_back(static_cast<int8_t>(i));
  for (int i = 1; i <= 127; ++i) w.push_back(static_cast<int8_t>(i));
  o.x = tensor<int8_t>({255, 1}, x), o.weights = tensor<int8_t>({127, 1}, w),
  o.bias = full<int32_t>({127}, 0);
  for (const float m : {0.5f, 0.25f, 0.125f, 1.0f / 3, 0.0078125f, 3e-5f, 255.0f}) {
    o.multipliers = full<float>({127}, m);
    EXPECT_TRUE(check_bits(a, o)) << m;
  }
}

TEST(XnnpackIntegers, RefusesWhatItCannotDo) {
  Tensor y;
  const Operands o = operands({2, 3}, {4, 3}, 4, 1000, 1);
  EXPECT_TRUE(xnn::run_step(QFullyConnectedAttrs{}, {o.tensors()}, nullptr, &y));
  EXPECT_FALSE(xnn::run_step(QFullyConnectedAttrs{.to = static_cast<int64_t>(DType::kFloat32)}, {o.tensors()},
                             nullptr, &y));
  EXPECT_FALSE(xnn::run_step(QFullyConnectedAttrs{.q_min = 3, .q_max = 3}, {o.tensors()}, nullptr, &y));
  EXPECT_FALSE(xnn::run_step(QFullyConnectedAttrs{}, {o.tensors(), false}, nullptr, &y));
  Operands zeros = o;
  zeros.weight_zeros = full<int8_t>({4}, 3);
  EXPECT_FALSE(xnn::run_step(QFullyConnectedAttrs{}, {zeros.tensors()}, nullptr, &y));
  for (const float bad : {0.0f, -1.0f, 300.0f, std::nanf("")}) {
    Operands wrong = o;
    wrong.multipliers = full<float>({4}, bad);
    EXPECT_FALSE(xnn::run_step(QFullyConnectedAttrs{}, {wrong.tensors()}, nullptr, &y)) << bad;
  }
}

}  // namespace
}  // namespace sinter::test
