// Integer products as XNNPACK takes them: one multiplier for each channel, int8 results.
#include <cmath>
#include <random>

#include "tests/op_harness/op_test.h"
#include "tests/ops/quantized_test.h"

namespace sinter::test {
namespace {

using quantized::Operands;

TEST(Requantize, Conv) {
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
    const Operands o =
        quantized::operands<int8_t>({pick(1, 2), pick(7, 12), pick(7, 12), ic * a.group}, {oc, kh, kw, ic},
                                    oc, 60 * std::sqrt(static_cast<double>(kh * kw * ic)) * 60, round);
    check_taken_by("xnnpack", a, o.tensors());
  }
}

TEST(Requantize, DepthwiseConv) {
  for (const int64_t kernel : {1, 3, 5, 7})
    for (const int64_t channels : {1, 3, 16, 37, 64})
      for (const int64_t multiplier : {1, 2}) {
        QDepthwiseConvAttrs a{};
        a.strides = {1, kernel > 3 ? 2 : 1}, a.dilations = {1, 1},
        a.pads = {kernel / 2, 0, kernel / 2, kernel / 2};
        a.x_zero = 127, a.y_zero = -100, a.q_min = -100;
        check_taken_by(
            "xnnpack", a,
            quantized::operands<int8_t>({1, 9, 9, channels}, {kernel, kernel, channels * multiplier},
                                        channels * multiplier, 3000.0 * static_cast<double>(kernel), 5)
                .tensors());
      }
}

TEST(Requantize, ConvTranspose) {
  for (const int64_t stride : {1, 2, 3})
    for (const int64_t kernel : {2, 3, 5}) {
      QConvTransposeAttrs a{};
      a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {1, 0, 0, 1},
      a.output_padding = {stride - 1, 0};
      a.x_zero = -128, a.y_zero = 5;
      check_taken_by(
          "xnnpack", a,
          quantized::operands<int8_t>({1, 5, 6, 19}, {11, kernel, kernel, 19}, 11, 20000, 5).tensors());
    }
}

TEST(Requantize, FullyConnected) {
  for (const int64_t k : {1, 3, 8, 64, 300})
    for (const int64_t n : {1, 7, 16, 100}) {
      QFullyConnectedAttrs a{};
      a.x_zero = 3, a.y_zero = -7, a.q_max = 100;
      check_taken_by(
          "xnnpack", a,
          quantized::operands<int8_t>({5, k}, {n, k}, n, 4000 * std::sqrt(static_cast<double>(k)), 5)
              .tensors());
    }
}

// Every rounding case: sums of 0 to 65535 by the multipliers of 1/2, 1/3, ... with both signs.
TEST(Requantize, RoundsHalvesToEven) {
  QFullyConnectedAttrs a{};
  Operands o;
  std::vector<int8_t> x, w;
  for (int i = -127; i <= 127; ++i) x.push_back(static_cast<int8_t>(i));
  for (int i = 1; i <= 127; ++i) w.push_back(static_cast<int8_t>(i));
  o.x = tensor<int8_t>({255, 1}, x), o.weights = tensor<int8_t>({127, 1}, w),
  o.bias = full<int32_t>({127}, 0);
  for (const float m : {0.5f, 0.25f, 0.125f, 1.0f / 3, 0.0078125f, 3e-5f, 255.0f}) {
    o.multipliers = full<float>({127}, m);
    check_taken_by("xnnpack", a, o.tensors());
  }
}

}  // namespace
}  // namespace sinter::test
