// Quantize, Dequantize, DynamicQuantize.

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

QuantizeAttrs quantize(DType to, int64_t axis = 0, int64_t block = 0) {
  QuantizeAttrs a;
  a.to = static_cast<int64_t>(to), a.axis = axis, a.block_size = block;
  return a;
}
DequantizeAttrs dequantize(DType to = DType::kFloat32, int64_t axis = 0, int64_t block = 0) {
  DequantizeAttrs a;
  a.to = static_cast<int64_t>(to), a.axis = axis, a.block_size = block;
  return a;
}

TEST(Quantize, HalfToEvenThenZeroPointThenSaturation) {
  const Tensor x = tensor<float>({9}, {0, 1, 3, 5, -1, 1000, -1000, kInf, kNan}),
               scale = tensor<float>({}, {2});
  expect_equal(run_op(quantize(DType::kUint8), {x, scale, tensor<uint8_t>({}, {128})})[0],
               tensor<uint8_t>({9}, {128, 128, 130, 130, 128, 255, 0, 255, 128}));
  expect_equal(run_op(quantize(DType::kInt8), {x, scale})[0],
               tensor<int8_t>({9}, {0, 0, 2, 2, 0, 127, -128, 127, 0}));
  expect_equal(
      run_op(quantize(DType::kInt16), {x, tensor<float>({1}, {0.01f}), tensor<int16_t>({1}, {-5})})[0],
      tensor<int16_t>({9}, {-5, 95, 295, 495, -105, 32767, -32768, 32767, -5}));
  expect_equal(
      run_op(quantize(DType::kUint16), {tensor<double>({2}, {1.5, 1e9}), tensor<double>({}, {1})})[0],
      tensor<uint16_t>({2}, {2, 65535}));
  expect_equal(run_op(quantize(DType::kUint8), {tensor<int32_t>({2}, {100, 7}), tensor<float>({}, {2})})[0],
               tensor<uint8_t>({2}, {50, 4}));
}

TEST(Quantize, ReadsHalves) {
  const Tensor half =
      bits_tensor<uint16_t>(DType::kFloat16, {3}, {0x3c00, 0xc500, 0x7c00});  // 1, -5, infinity
  const Tensor scale = bits_tensor<uint16_t>(DType::kFloat16, {}, {0x4000});
  expect_equal(run_op(quantize(DType::kInt8), {half, scale})[0], tensor<int8_t>({3}, {0, -2, 127}));
}

TEST(Quantize, PerAxis) {
  const Tensor x = iota<float>({2, 3, 2});
  expect_equal(run_op(quantize(DType::kInt8, 1),
                      {x, tensor<float>({3}, {1, 2, 4}), tensor<int8_t>({3}, {0, 10, -1})})[0],
               tensor<int8_t>({2, 3, 2}, {0, 1, 11, 12, 0, 0, 6, 7, 14, 14, 1, 2}));
  expect_equal(run_op(quantize(DType::kInt8, 2), {x, tensor<float>({2}, {1, 0.5f})})[0],
               tensor<int8_t>({2, 3, 2}, {0, 2, 2, 6, 4, 10, 6, 14, 8, 18, 10, 22}));
  expect_equal(run_op(quantize(DType::kInt8, 0), {x, tensor<float>({2}, {1, 6})})[0],
               tensor<int8_t>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 1, 1, 1, 2, 2, 2}));
  expect_equal(run_op(quantize(DType::kInt8, 1), {tensor<float>({2, 0, 2}, {}), tensor<float>({0}, {})})[0],
               tensor<int8_t>({2, 0, 2}, {}));
}

TEST(Quantize, BlocksMayBeCutOff) {
  const Tensor x = tensor<float>({2, 3}, {2, 4, 6, 8, 10, 12});
  expect_equal(run_op(quantize(DType::kInt8, 1, 2),
                      {x, tensor<float>({2, 2}, {1, 2, 4, 6}), tensor<int8_t>({2, 2}, {0, 1, 2, 3})})[0],
               tensor<int8_t>({2, 3}, {2, 4, 4, 4, 4, 5}));
  expect_equal(run_op(quantize(DType::kInt8, 0, 2), {x, tensor<float>({1, 3}, {1, 2, 4})})[0],
               tensor<int8_t>({2, 3}, {2, 2, 2, 8, 5, 3}));
  expect_refused(quantize(DType::kInt8, 1, 2), {x, tensor<float>({2, 3}, {1, 1, 1, 1, 1, 1})});
  expect_refused(quantize(DType::kInt8, 1, 2), {x, tensor<float>({2}, {1, 1})});
  expect_refused(quantize(DType::kInt8, 1, -2), {x, tensor<float>({}, {1})});
}

TEST(Quantize, PackedAndFloat8) {
  const Tensor x = tensor<float>({5}, {-100, -1, 0, 1.5f, 100}), one = tensor<float>({}, {1});
  const auto int4 = run_op(quantize(DType::kInt4), {x, one})[0];
  EXPECT_EQ(int4.bytes, (std::vector<std::byte>{std::byte{0xf8}, std::byte{0x20}, std::byte{0x07}}));
  expect_equal(run_op(dequantize(), {int4, one})[0], tensor<float>({5}, {-8, -1, 0, 2, 7}));
  const auto uint2 = run_op(quantize(DType::kUint2), {x, one})[0];
  expect_equal(run_op(dequantize(), {uint2, one})[0], tensor<float>({5}, {0, 0, 0, 2, 3}));
  const auto fp8 = run_op(quantize(DType::kFloat8E4M3FN),
                          {tensor<float>({3}, {1, 1e6f, 0.3f}), tensor<float>({}, {2})})[0];
  expect_equal(run_op(dequantize(), {fp8, tensor<float>({}, {2})})[0], tensor<float>({3}, {1, 896, 0.3125f}));
  const auto fp4 = run_op(quantize(DType::kFloat4E2M1), {tensor<float>({3}, {1, 100, -0.5f}), one})[0];
  expect_equal(run_op(dequantize(), {fp4, one})[0], tensor<float>({3}, {1, 6, -0.5f}));
  // Per axis with packed zero points.
  Tensor zero{DType::kUint4, {3}, {std::byte{0x21}, std::byte{0x03}}},
      q{DType::kUint4, {2, 3}, {std::byte{0x43}, std::byte{0x65}, std::byte{0x87}}};
  expect_equal(run_op(dequantize(DType::kFloat32, 1), {q, tensor<float>({3}, {1, 10, 100}), zero})[0],
               tensor<float>({2, 3}, {2, 20, 200, 5, 50, 500}));
}

TEST(Dequantize, TypesOfScaleAndResult) {
  const Tensor q = tensor<int8_t>({3}, {-128, 0, 127}), zero = tensor<int8_t>({}, {-1});
  expect_equal(run_op(dequantize(), {q, tensor<float>({}, {0.5f}), zero})[0],
               tensor<float>({3}, {-63.5f, 0.5f, 64}));
  const Tensor half = bits_tensor<uint16_t>(DType::kFloat16, {}, {0x3800});
  EXPECT_EQ(run_op(dequantize(DType::kFloat16), {q, half, zero})[0].values<uint16_t>(),
            (std::vector<uint16_t>{0xd3f0, 0x3800, 0x5400}));
  expect_equal(run_op(dequantize(), {q, bits_tensor<uint16_t>(DType::kBFloat16, {}, {0x3f00}), zero})[0],
               tensor<float>({3}, {-63.5f, 0.5f, 64}));
  expect_equal(run_op(dequantize(), {q, bits_tensor<uint8_t>(DType::kFloat8E8M0, {}, {126}), zero})[0],
               tensor<float>({3}, {-63.5f, 0.5f, 64}));
  expect_equal(run_op(dequantize(DType::kFloat64),
                      {tensor<int32_t>({2}, {INT32_MAX, INT32_MIN}), tensor<double>({}, {2})})[0],
               tensor<double>({2}, {4294967294.0, -4294967296.0}));
  expect_equal(run_op(dequantize(), {tensor<int32_t>({1}, {INT32_MIN}), tensor<float>({}, {1}),
                                     tensor<int32_t>({}, {INT32_MAX})})[0],
               tensor<float>({1}, {-4294967295.f}));
  expect_equal(run_op(dequantize(), {tensor<uint16_t>({2}, {65535, 0}), tensor<float>({}, {1}),
                                     tensor<uint16_t>({}, {1})})[0],
               tensor<float>({2}, {65534, -1}));
}

TEST(Dequantize, Refuses) {
  const Tensor q = tensor<int8_t>({2}, {1, 2}), s = tensor<float>({}, {1});
  expect_refused(dequantize(), {q, s, tensor<uint8_t>({}, {1})});
  expect_refused(dequantize(), {q, tensor<float>({3}, {1, 1, 1})});
  expect_refused(dequantize(), {q, tensor<float>({2}, {1, 1}), tensor<int8_t>({}, {1})});
  expect_refused(dequantize(DType::kFloat32, 1), {q, tensor<float>({2}, {1, 1})});
  expect_refused(dequantize(DType::kInt8), {q, s});
  expect_refused(dequantize(), {tensor<int64_t>({1}, {1}), s});
  expect_refused(quantize(DType::kInt32), {tensor<float>({1}, {1}), s});
  expect_refused(quantize(DType::kInt8), {tensor<float>({1}, {1}), s, tensor<uint8_t>({}, {1})});
  expect_refused(quantize(DType::kInt8), {tensor<float>({1}, {1}), tensor<int32_t>({}, {1})});
}

TEST(DynamicQuantize, RangeHoldsZero) {
  auto y = run_op(DynamicQuantizeAttrs{}, {tensor<float>({6}, {0, 2, -3, -2.5f, 1.34f, 0.5f})}, {3, {}});
  const float scale = 5 / 255.0f;
  expect_equal(y[0], tensor<uint8_t>({6}, {153, 255, 0, 26, 221, 179}));
  expect_equal(y[1], tensor<float>({}, {scale}));
  expect_equal(y[2], tensor<uint8_t>({}, {153}));
  y = run_op(DynamicQuantizeAttrs{}, {tensor<float>({2}, {1, 2.55f})});
  expect_equal(y[0], tensor<uint8_t>({2}, {100, 255}));
  expect_equal(y[2], tensor<uint8_t>({}, {0}));
  y = run_op(DynamicQuantizeAttrs{}, {tensor<float>({2}, {0, 0})});
  expect_equal(y[0], tensor<uint8_t>({2}, {0, 0}));
  expect_equal(y[1], tensor<float>({}, {1}));
  EXPECT_EQ(run_op(DynamicQuantizeAttrs{}, {tensor<float>({0}, {})})[0].dims, (Shape{0}));
}

// The same numbers less 128.
TEST(DynamicQuantize, ToInt8) {
  DynamicQuantizeAttrs attrs{};
  attrs.to = static_cast<int64_t>(DType::kInt8);
  for (const int64_t n : {0, 5, 64, 1003, 40000}) {
    auto v = noise<float>({n}, -3, 5).values<float>();
    if (n > 5) v[3] = kNan, v[static_cast<size_t>(n) - 1] = 7;
    const Tensor x = tensor<float>({n}, v);
    const auto less = run_op(attrs, {x}, {3, {}}), y = run_op(DynamicQuantizeAttrs{}, {x}, {3, {}});
    std::vector<int8_t> want;
    for (const uint8_t b : y[0].values<uint8_t>()) want.push_back(static_cast<int8_t>(b - 128));
    expect_equal(less[0], tensor<int8_t>({n}, want));
    expect_equal(less[1], y[1]);
    expect_equal(less[2], tensor<int8_t>({}, {static_cast<int8_t>(y[2].values<uint8_t>()[0] - 128)}));
  }
  attrs.to = static_cast<int64_t>(DType::kInt16);
  expect_refused(attrs, {tensor<float>({1}, {1})});
}

}  // namespace
}  // namespace sinter::test
