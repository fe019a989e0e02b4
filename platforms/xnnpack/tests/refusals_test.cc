// The calls that the XNNPACK backend leaves to others.
#include <gtest/gtest.h>

#include <cmath>

#include "platforms/xnnpack/platform.h"
#include "runtime/core/op_enums.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/tolerance.h"

namespace sinter::test {
namespace {

template <class A>
bool xnnpack_takes(const A& attrs, const std::vector<Tensor>& inputs, const MeasureOptions& options = {}) {
  return takes("xnnpack", attrs, inputs, options);
}

ConvAttrs plain_conv() {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
  return a;
}

TEST(XnnpackRefuses, Floats) {
  ConvAttrs conv = plain_conv();
  const Tensor x = noise<float>({1, 4, 4, 2}, -1, 1), f = noise<float>({3, 2, 2, 2}, -1, 1);
  EXPECT_TRUE(xnnpack_takes(conv, {x, f}));
  EXPECT_FALSE(xnnpack_takes(conv, {x, f}, {.constants = false}));
  EXPECT_FALSE(xnnpack_takes(conv, {widened(x), widened(f)}));
  conv.act_min = conv.act_max = 0;
  EXPECT_FALSE(xnnpack_takes(conv, {x, f}));
  EXPECT_FALSE(
      xnnpack_takes(FullyConnectedAttrs{}, {noise<float>({0, 2}, -1, 1), noise<float>({3, 2}, -1, 1)}));
  AddAttrs add;
  EXPECT_TRUE(xnnpack_takes(add, {x, x}));
  add.act_min = 0;
  EXPECT_FALSE(xnnpack_takes(add, {x, x}));
  MatMulAttrs product;
  product.transpose_a = 1;
  EXPECT_FALSE(xnnpack_takes(product, {noise<float>({4, 3}, -1, 1), noise<float>({4, 2}, -1, 1)}));
  MaxPoolAttrs pool;
  pool.kernel = {2, 2}, pool.strides = {1, 1}, pool.dilations = {1, 1}, pool.pads = {0, 0, 0, 0};
  EXPECT_FALSE(xnnpack_takes(pool, {x}, {.outputs = 2}));
  EXPECT_FALSE(xnnpack_takes(SoftmaxAttrs{}, {x}));
}

// Operands 0 may have their pixels apart if the row of ops.def allows it.
TEST(XnnpackTakes, PixelsApart) {
  const MeasureOptions apart{.layout = Layout::kPixels};
  const Tensor x = noise<float>({1, 4, 4, 2}, -1, 1), f = noise<float>({3, 2, 2, 2}, -1, 1);
  EXPECT_TRUE(xnnpack_takes(plain_conv(), {x, f}, apart));
  EXPECT_TRUE(xnnpack_takes(FullyConnectedAttrs{}, {x, noise<float>({3, 2}, -1, 1)}, apart));
  AvgPoolAttrs pool;
  pool.kernel = {2, 2};
  EXPECT_TRUE(xnnpack_takes(pool, {x}, apart));
  EXPECT_FALSE(xnnpack_takes(AddAttrs{}, {x, x}, apart));
}

// The library derives the scale from the sizes: ONNX's coordinates follow the scale, which may differ.
TEST(XnnpackRefuses, ScalesThatAreNotTheRatioOfTheSizes) {
  ResizeAttrs a;
  a.mode = static_cast<int64_t>(ResizeMode::kLinear);
  for (const ResizeCoordinates c :
       {ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAlignCorners, ResizeCoordinates::kAsymmetric}) {
    a.coordinates = static_cast<int64_t>(c);
    a.sizes = {1, 2, 2, 3}, a.scales = {1, 0.5, 0.5, 1};
    EXPECT_TRUE(xnnpack_takes(a, {noise<float>({1, 4, 4, 3}, -1, 1)}));
    a.scales = {1, 0.6, 0.6, 1};
    EXPECT_FALSE(xnnpack_takes(a, {noise<float>({1, 4, 4, 3}, -1, 1)}));
  }
}

// Other kernels are faster for these.
TEST(XnnpackRefuses, Float32WhereItsRowIsForFloat16) {
  const Tensor x = noise<float>({3, 7}, -1, 1);
  EXPECT_FALSE(xnnpack_takes(SigmoidAttrs{}, {x}));
  EXPECT_FALSE(xnnpack_takes(MaxAttrs{}, {x, x}));
  EXPECT_FALSE(xnnpack_takes(MinAttrs{}, {x, x}));
  EXPECT_FALSE(xnnpack_takes(ClampAttrs{.min = -1, .max = 1}, {x}));
  EXPECT_FALSE(xnnpack_takes(ClampAttrs{.min = 0, .max = kInfinity}, {x}));
}

TEST(XnnpackRefuses, Float16) {
  const Tensor x = halved(noise<float>({1, 4, 4, 2}, -1, 1)), f = noise<float>({3, 2, 2, 2}, -1, 1);
  EXPECT_FALSE(xnnpack_takes(plain_conv(), {x, halved(f)}, {.constants = false}));
  EXPECT_FALSE(xnnpack_takes(ClampAttrs{.min = 0, .max = 1e6}, {x}));
  EXPECT_FALSE(xnnpack_takes(SoftmaxAttrs{}, {x}));
}

TEST(XnnpackRefuses, Integers) {
  const auto operands = [](float multiplier) {
    return std::vector<Tensor>{noise<int8_t>({2, 3}, -128, 128, 1), noise<int8_t>({4, 3}, -127, 127, 2),
                               full<int32_t>({4}, 5), full<float>({4}, multiplier)};
  };
  const std::vector<Tensor> o = operands(0.001f);
  EXPECT_TRUE(xnnpack_takes(QFullyConnectedAttrs{}, o));
  EXPECT_FALSE(xnnpack_takes(QFullyConnectedAttrs{.to = static_cast<int64_t>(DType::kFloat32)}, o));
  EXPECT_FALSE(xnnpack_takes(QFullyConnectedAttrs{.q_min = 3, .q_max = 3}, o));
  EXPECT_FALSE(xnnpack_takes(QFullyConnectedAttrs{}, o, {.constants = false}));
  std::vector<Tensor> zeros = o;
  zeros.push_back(full<int8_t>({4}, 3));
  EXPECT_FALSE(xnnpack_takes(QFullyConnectedAttrs{}, zeros));
  for (const float bad : {0.0f, -1.0f, 300.0f, std::nanf("")})
    EXPECT_FALSE(xnnpack_takes(QFullyConnectedAttrs{}, operands(bad))) << bad;
}

}  // namespace
}  // namespace sinter::test
