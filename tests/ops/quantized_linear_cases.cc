// The integer products against the formula of docs/numerics.md: sums by the int64 kernels of the same
// geometry.
#include <cmath>

#include "tests/op_harness/op_test.h"
#include "tests/ops/quantized_test.h"

namespace sinter::test {
namespace {

using quantized::Operands;

// Runs the integer op and its int64 twin, and compares.
template <class Q, class Twin, class X = int8_t>
void check(const Q& attrs, const Twin& twin, const Operands& o, int64_t channel_axis) {
  const Tensor want =
      quantized::expected<X>(attrs, o, run_op(twin, quantized::widened<X>(attrs, o, channel_axis))[0]);
  expect_equal(run_op(attrs, o.tensors())[0], want);
}

QConvAttrs conv(int64_t group) {
  QConvAttrs a{};
  a.strides = {1, 2}, a.dilations = {2, 1}, a.pads = {1, 0, 2, 1}, a.group = group;
  a.x_zero = -7, a.y_zero = 11, a.q_min = -100, a.q_max = 90;
  return a;
}
ConvAttrs twin(const QConvAttrs& a) {
  return {.strides = a.strides, .dilations = a.dilations, .pads = a.pads, .group = a.group};
}

TEST(QConv, AgreesWithTheFormula) {
  for (const int64_t group : {1, 2, 4}) {
    const QConvAttrs a = conv(group);
    check(a, twin(a), quantized::operands<int8_t>({2, 6, 7, 8}, {12, 3, 2, 8 / group}, 12, 300, group), 0);
  }
}

TEST(QConv, PadsWithTheZeroPoint) {
  QConvAttrs a{.strides = {1}, .dilations = {1}, .pads = {1, 1}, .x_zero = 5};
  const Tensor y = run_op(a, {tensor<int8_t>({1, 1, 1}, {5}), tensor<int8_t>({1, 3, 1}, {100, 1, 100}),
                              tensor<int32_t>({1}, {0}), tensor<float>({1}, {1})})[0];
  expect_equal(y, tensor<int8_t>({1, 1, 1}, {0}));
}

TEST(QConv, FloatAndWideResults) {
  QConvAttrs a = conv(1);
  const Operands o = quantized::operands<int8_t>({1, 5, 5, 3}, {4, 3, 2, 3}, 4, 50, 9);
  a.to = static_cast<int64_t>(DType::kFloat32);
  check(a, twin(a), o, 0);
  a.to = static_cast<int64_t>(DType::kInt16), a.y_zero = -300, a.q_min = -30000, a.q_max = 32767;
  check(a, twin(a), o, 0);
}

TEST(QConv, WideActivations) {
  QConvAttrs a = conv(1);
  a.x_zero = 0, a.y_zero = 0, a.to = static_cast<int64_t>(DType::kInt16), a.q_min = -32768, a.q_max = 32767;
  const Operands o = quantized::operands<int16_t>({1, 5, 5, 30}, {4, 3, 2, 30}, 4, 50000, 9);
  check<QConvAttrs, ConvAttrs, int16_t>(a, twin(a), o, 0);
}

TEST(QConv, OneMultiplierAndWeightZeroPoints) {
  const QConvAttrs a = conv(1);
  Operands o = quantized::operands<int8_t>({1, 5, 5, 3}, {4, 3, 2, 3}, 4, 50, 9);
  o.multipliers = tensor<float>({1}, {0.0123f});
  o.weight_zeros = tensor<int8_t>({1}, {-128});
  check(a, twin(a), o, 0);
  o.weight_zeros = tensor<int8_t>({4}, {-128, 127, 3, 0});
  check(a, twin(a), o, 0);
}

TEST(QDepthwiseConv, AgreesWithTheFormula) {
  for (const int64_t multiplier : {1, 3}) {
    QDepthwiseConvAttrs a{};
    a.strides = {2, 1}, a.dilations = {1, 2}, a.pads = {1, 2, 0, 1}, a.x_zero = 100, a.y_zero = -128;
    const DepthwiseConvAttrs t{.strides = a.strides, .dilations = a.dilations, .pads = a.pads};
    check(a, t, quantized::operands<int8_t>({2, 6, 7, 19}, {3, 2, 19 * multiplier}, 19 * multiplier, 60, 3),
          2);
  }
}

TEST(QConvTranspose, AgreesWithTheFormula) {
  for (const int64_t group : {1, 2}) {
    QConvTransposeAttrs a{};
    a.strides = {2, 3}, a.dilations = {1, 2}, a.pads = {1, 0, 0, 1}, a.output_padding = {1, 0},
    a.group = group;
    a.x_zero = -3, a.y_zero = 4;
    const ConvTransposeAttrs t{.strides = a.strides,
                               .dilations = a.dilations,
                               .pads = a.pads,
                               .output_padding = a.output_padding,
                               .group = group};
    check(a, t, quantized::operands<int8_t>({2, 3, 4, 6}, {10, 3, 2, 6 / group}, 10, 60, 3), 0);
    // A filter longer than the input.
    check(a, t, quantized::operands<int8_t>({2, 2, 1, 6}, {10, 19, 9, 6 / group}, 10, 60, 3), 0);
  }
}

TEST(QFullyConnected, AgreesWithTheFormula) {
  for (const int64_t k : {1, 5, 700}) {
    QFullyConnectedAttrs a{};
    a.x_zero = 127, a.y_zero = -1, a.q_min = -1;
    check(a, FullyConnectedAttrs{}, quantized::operands<int8_t>({3, 2, k}, {13, k}, 13, 127 * k / 2, 3), 0);
  }
}

TEST(QMatMul, AgreesWithTheFormula) {
  const Tensor a = noise<int8_t>({2, 1, 5, 70}, -128, 128, 1), b = noise<int8_t>({3, 70, 9}, -128, 128, 2);
  QMatMulAttrs q{.x_zero = -128, .b_zero = 100, .multiplier = 0.0001, .y_zero = 3, .q_min = -90};
  const Tensor sums =
      run_op(MatMulAttrs{}, {quantized::shifted<int8_t>(a, -128), quantized::shifted<int8_t>(b, 100)})[0];
  std::vector<int8_t> want;
  for (const int64_t sum : sums.values<int64_t>())
    want.push_back(static_cast<int8_t>(quantized::requantized(q, static_cast<float>(sum) * 0.0001f)));
  expect_equal(run_op(q, {a, b})[0], tensor<int8_t>({2, 3, 5, 9}, want));
}

TEST(QuantizedRounding, HalvesGoToEvenAndNanToTheLowerBound) {
  QFullyConnectedAttrs a{};
  const Tensor x = tensor<int8_t>({6, 1}, {1, 3, 5, -1, -3, -5});
  const Tensor y =
      run_op(a, {x, tensor<int8_t>({1, 1}, {1}), tensor<int32_t>({1}, {0}), tensor<float>({1}, {0.5f})})[0];
  expect_equal(y, tensor<int8_t>({6, 1}, {0, 2, 2, 0, -2, -2}));
  for (const float m : {std::nanf(""), -INFINITY, -3e38f})
    expect_equal(run_op(a, {tensor<int8_t>({1, 1}, {9}), tensor<int8_t>({1, 1}, {9}),
                            tensor<int32_t>({1}, {0}), tensor<float>({1}, {m})})[0],
                 tensor<int8_t>({1, 1}, {-128}));
}

TEST(QuantizedProducts, Refuse) {
  const Tensor x = full<int8_t>({2, 3}, 1), w = full<int8_t>({4, 3}, 1), b = full<int32_t>({4}, 0),
               m = full<float>({4}, 1);
  expect_refused(QFullyConnectedAttrs{}, {full<float>({2, 3}, 1), w, b, m});
  expect_refused(QFullyConnectedAttrs{}, {x, full<uint8_t>({4, 3}, 1), b, m});
  expect_refused(QFullyConnectedAttrs{}, {x, full<int8_t>({4, 2}, 1), b, m});
  expect_refused(QFullyConnectedAttrs{}, {x, w, full<int64_t>({4}, 0), m});
  expect_refused(QFullyConnectedAttrs{}, {x, w, full<int32_t>({3}, 0), m});
  expect_refused(QFullyConnectedAttrs{}, {x, w, b, full<double>({4}, 1)});
  expect_refused(QFullyConnectedAttrs{}, {x, w, b, full<float>({2}, 1)});
  expect_refused(QFullyConnectedAttrs{}, {x, w, b, m, full<int8_t>({2}, 1)});
  expect_refused(QFullyConnectedAttrs{.x_zero = 128}, {x, w, b, m});
  expect_refused(QFullyConnectedAttrs{.y_zero = -129}, {x, w, b, m});
  expect_refused(QFullyConnectedAttrs{.q_min = 5, .q_max = 4}, {x, w, b, m});
  expect_refused(QFullyConnectedAttrs{.q_max = 128}, {x, w, b, m});
  expect_refused(QFullyConnectedAttrs{.to = static_cast<int64_t>(DType::kUint8)}, {x, w, b, m});
  expect_refused(QMatMulAttrs{.b_zero = 200}, {x, full<int8_t>({3, 4}, 1)});
  expect_refused(QMatMulAttrs{.multiplier = -1}, {x, full<int8_t>({3, 4}, 1)});
  expect_refused(QMatMulAttrs{.multiplier = std::nan("")}, {x, full<int8_t>({3, 4}, 1)});
}

}  // namespace
}  // namespace sinter::test
