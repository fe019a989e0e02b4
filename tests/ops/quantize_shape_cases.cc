// Quantize and Dequantize of every type, scale, axis and rounding case.
#include <cmath>
#include <limits>
#include <string>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr float kMostFloat = std::numeric_limits<float>::max();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();

QuantizeAttrs quantize_to(DType to, int64_t axis = 0) {
  QuantizeAttrs a;
  a.to = static_cast<int64_t>(to), a.axis = axis;
  return a;
}
DequantizeAttrs dequantize_along(int64_t axis = 0) {
  DequantizeAttrs a;
  a.to = static_cast<int64_t>(DType::kFloat32), a.axis = axis;
  return a;
}

// Quotients around every rounding and saturation, and what is not a number at all.
Tensor edges(float scale) {
  std::vector<float> v{0,       -0.0f,  kNan,    -kNan,    kInf, -kInf, kMostFloat, -kMostFloat, kLeast,
                       -kLeast, 1e-39f, -1e-39f, 1.2e-38f, 1,    -1,    1e10f,      -1e10f};
  for (const int64_t step : {1, 127, 128, 129, 255, 256, 257, 32767, 32768, 65535, 65536, 131071, 1 << 20})
    for (int64_t i = -6; i <= 6; ++i)
      for (const float sign : {-1.0f, 1.0f}) {
        const float x = sign * (static_cast<float>(step) + static_cast<float>(i) / 2) * scale;
        for (const float near : {x, std::nextafter(x, kInf), std::nextafter(x, -kInf)}) v.push_back(near);
      }
  return tensor<float>({static_cast<int64_t>(v.size())}, v);
}

template <class T>
void check_quantize_type() {
  constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const DType to = dtype_of<T>();
  SCOPED_TRACE(dtype_name(to));
  for (const float scale : {1.0f, 0.5f, 0.1f, 3.7e-3f, 1e-30f, 1e30f, kMostFloat, 1.2e-38f, 1e-40f, kLeast,
                            0.0f, -0.25f, kInf, kNan}) {
    SCOPED_TRACE(scale);
    const Tensor s = tensor<float>({}, {scale}),
                 x = edges(std::isfinite(scale) && scale < 1e32f ? scale : 1.0f);
    check_taken_by("simd", quantize_to(to), {x, s});
    for (const T zero : {kLow, static_cast<T>(3), kHigh})
      check_taken_by("simd", quantize_to(to), {x, s, tensor<T>({}, {zero})});
    check_taken_by("simd", quantize_to(to),
                   {tensor<int32_t>({9}, {0, 1, -1, 5, 1000, -70000, 16777217, INT32_MAX, INT32_MIN}), s});
  }
  for (int64_t n = 0; n < 140; ++n)
    check_taken_by("simd", quantize_to(to),
                   {noise<float>({n}, -300, 300, static_cast<uint64_t>(n)), tensor<float>({1}, {1.7f}),
                    tensor<T>({1}, {5})});
  check_taken_by("simd", quantize_to(to), {noise<float>({}, -300, 300, 3), tensor<float>({}, {1.7f})});
  check_taken_by(
      "simd", quantize_to(to),
      {noise<float>({3, 20011}, -40000, 40000, 4), tensor<float>({}, {0.7f}), tensor<T>({}, {kHigh / 2})});
}

// Quotients of bytes at and beside every half, among others that are far from one, by many scales.
template <class T>
void check_halves() {
  uint64_t seed = 1;
  for (const float scale : {0.1f, 0.3333333f, 1.9999999f, 1.0000001f, 0x1p-101f, 0x1p-100f, 0x1.7p-99f,
                            0x1p100f, 0x1p101f, -0.7f, 3.1415927f, 0.003921569f, 0.0078125f, 77.7f}) {
    SCOPED_TRACE(scale);
    std::vector<float> v;
    for (int i = -1100; i <= 1100; ++i) {
      const float x = (static_cast<float>(i) / 2) * scale;
      for (const float near : {x, std::nextafter(x, kInf), std::nextafter(x, -kInf),
                               std::nextafter(std::nextafter(x, kInf), kInf)})
        v.push_back(near);
    }
    check_taken_by(
        "simd", quantize_to(dtype_of<T>()),
        {tensor<float>({static_cast<int64_t>(v.size())}, v), tensor<float>({}, {scale}), tensor<T>({}, {3})});
    check_taken_by("simd", quantize_to(dtype_of<T>()),
                   {noise<float>({30000}, -280.0 * std::fabs(scale), 280.0 * std::fabs(scale), seed++),
                    tensor<float>({}, {scale}), tensor<T>({}, {100})});
  }
}

TEST(QuantizeShapes, BytesNearHalves) {
  check_halves<int8_t>();
  check_halves<uint8_t>();
}

TEST(QuantizeShapes, PerTensor) {
  check_quantize_type<int8_t>();
  check_quantize_type<uint8_t>();
  check_quantize_type<int16_t>();
  check_quantize_type<uint16_t>();
}

// The definition in double, whatever the arithmetic of the kernels: sat(rne(x / scale) + zero), where NaN
// gives the zero point.
template <class T>
T quantized(float x, float scale, T zero) {
  const auto quotient = static_cast<double>(x / scale);
  const double v = (quotient != quotient ? 0 : std::nearbyint(quotient)) + static_cast<double>(zero);
  constexpr double kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  return static_cast<T>(v < kLow ? kLow : v > kHigh ? kHigh : v);
}

// The reference kernels alone run, in one layout: other cases compare the backends with them.
RunOptions references_once() {
  RunOptions options;
  options.strided = options.in_place = options.backends = false;
  return options;
}

// Every zero point of 8 bits, or every 23rd of 16 bits and the largest.
template <class T>
Tensor zero_points() {
  std::vector<T> zeros;
  for (int v = std::numeric_limits<T>::min(); v <= std::numeric_limits<T>::max();
       v += sizeof(T) == 1 ? 1 : 23)
    zeros.push_back(static_cast<T>(v));
  zeros.push_back(std::numeric_limits<T>::max());
  return tensor<T>({static_cast<int64_t>(zeros.size())}, zeros);
}

template <class T>
void check_defined_quantize() {
  SCOPED_TRACE(dtype_name(dtype_of<T>()));
  const Tensor z = zero_points<T>();
  const std::vector<T> zeros = z.values<T>();
  constexpr int kAtEnds[] = {0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536};
  for (const float scale : {1.0f, 0.1f, 1.9999999f, -0.25f, 1e-40f, 0.0f, kInf, kNan}) {
    SCOPED_TRACE(scale);
    std::vector<float> own{0, -0.0f, kNan, kInf, -kInf, kMostFloat, -kMostFloat, kLeast};
    for (const int end : kAtEnds)
      for (const float half : {-0.5f, 0.0f, 0.5f, 1.5f})
        for (const float sign : {-1.0f, 1.0f})
          own.push_back(sign * (static_cast<float>(end) + half) * (std::isfinite(scale) ? scale : 1.0f));
    std::vector<float> x;
    std::vector<T> want;
    for (const T zero : zeros)
      for (const float v : own) x.push_back(v), want.push_back(quantized(v, scale, zero));
    const Shape dims{static_cast<int64_t>(zeros.size()), static_cast<int64_t>(own.size())};
    const Tensor scales = full<float>({dims[0]}, scale);
    const auto y = run_op(quantize_to(dtype_of<T>()), {tensor<float>(dims, x), scales, z}, references_once());
    expect_equal(y[0], tensor<T>(dims, want));
  }
}

TEST(QuantizeShapes, AsDefinedInDouble) {
  check_defined_quantize<int8_t>();
  check_defined_quantize<uint8_t>();
  check_defined_quantize<int16_t>();
  check_defined_quantize<uint16_t>();
}

// Short and long rows behind the axis, periods below and above a stretch.
const std::pair<Shape, int64_t> kAxes[] = {
    {{5}, 0},          {{3, 7}, 0},        {{3, 7}, 1},      {{2, 3, 5}, 1},
    {{4, 1, 6, 3}, 3}, {{300, 16}, 1},     {{7, 1023}, 1},   {{5, 1024}, 1},
    {{3, 1025}, 1},    {{2, 5000}, 1},     {{2, 60, 33}, 1}, {{2, 3, 64}, 1},
    {{2, 5, 131}, 1},  {{1, 2, 20000}, 1}, {{70, 63}, 0},    {{2, 4, 9, 3, 2}, 2},
    {{0, 3}, 1},       {{3, 0}, 0},        {{2, 0}, 1},      {{4, 1}, 1}};

template <class T>
void check_axes() {
  const auto low = static_cast<double>(std::numeric_limits<T>::min()),
             high = static_cast<double>(std::numeric_limits<T>::max()) + 1;
  SCOPED_TRACE(dtype_name(dtype_of<T>()));
  for (const auto& [dims, axis] : kAxes) {
    SCOPED_TRACE(testing::PrintToString(dims) + " along " + std::to_string(axis));
    const Shape own{dims[static_cast<size_t>(axis)]};
    const Tensor s = noise<float>(own, 0.01, 5, 7), z = noise<T>(own, low, high, 8);
    const Tensor x = noise<float>(dims, 2 * low - 100, 2 * high, 9), q = noise<T>(dims, low, high, 10);
    check_taken_by("simd", quantize_to(dtype_of<T>(), axis), {x, s, z});
    check_taken_by("simd", quantize_to(dtype_of<T>(), axis), {x, s});
    check_taken_by("simd", dequantize_along(axis), {q, s, z});
    check_taken_by("simd", dequantize_along(axis), {q, s});
  }
}

TEST(QuantizeShapes, PerAxis) {
  check_axes<int8_t>();
  check_axes<uint8_t>();
  check_axes<int16_t>();
  check_axes<uint16_t>();
}

template <class T>
void check_dequantize_type() {
  constexpr T kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  SCOPED_TRACE(dtype_name(dtype_of<T>()));
  const Tensor all = iota<T>({sizeof(T) == 1 ? 259 : 65537}, kLow);
  for (const float scale :
       {1.0f, 0.1f, 1e-40f, kLeast, 1.2e-38f, 1e36f, kMostFloat, 0.0f, -0.3f, kInf, kNan}) {
    SCOPED_TRACE(scale);
    const Tensor s = tensor<float>({}, {scale});
    check_taken_by("simd", dequantize_along(), {all, s});
    for (const T zero : {kLow, static_cast<T>(7), kHigh})
      check_taken_by("simd", dequantize_along(), {all, s, tensor<T>({}, {zero})});
  }
  for (int64_t n = 0; n < 70; ++n)
    check_taken_by("simd", dequantize_along(),
                   {iota<T>({n}, kLow), tensor<float>({1}, {0.3f}), tensor<T>({1}, {9})});
}

TEST(DequantizeShapes, PerTensor) {
  check_dequantize_type<int8_t>();
  check_dequantize_type<uint8_t>();
  check_dequantize_type<int16_t>();
  check_dequantize_type<uint16_t>();
}

template <class T>
void check_defined_dequantize() {
  SCOPED_TRACE(dtype_name(dtype_of<T>()));
  const Tensor z = zero_points<T>();
  const std::vector<T> zeros = z.values<T>(),
                       all = iota<T>({sizeof(T) == 1 ? 256 : 65536}, std::numeric_limits<T>::min())
                                 .template values<T>();
  for (const float scale : {0.1f, 1e-40f, -3e33f, kMostFloat, kInf, kNan}) {
    SCOPED_TRACE(scale);
    std::vector<T> q;
    std::vector<float> want;
    for (const T zero : zeros)
      for (size_t i = 0; i < all.size(); i += sizeof(T) == 1 ? 1 : 997) {
        q.push_back(all[i]);
        const double difference = static_cast<double>(all[i]) - static_cast<double>(zero);
        want.push_back(static_cast<float>(difference) * scale);
      }
    const auto rows = static_cast<int64_t>(zeros.size());
    const Shape dims{rows, static_cast<int64_t>(q.size()) / rows};
    const auto y =
        run_op(dequantize_along(), {tensor<T>(dims, q), full<float>({rows}, scale), z}, references_once());
    expect_equal(y[0], tensor<float>(dims, want));
  }
}

TEST(DequantizeShapes, AsDefinedInDouble) {
  check_defined_dequantize<int8_t>();
  check_defined_dequantize<uint8_t>();
  check_defined_dequantize<int16_t>();
  check_defined_dequantize<uint16_t>();
}

TEST(DequantizeShapes, Int32WithoutZeroPoint) {
  std::vector<int32_t> v{0, 1, -1, INT32_MAX, INT32_MIN, 16777217, 16777219, -33554435, 2147483520};
  for (int32_t i = 0; i < 90; ++i) v.push_back(i * 23456789 - 1000000000);
  const Tensor x = tensor<int32_t>({static_cast<int64_t>(v.size())}, v);
  for (const float scale : {1.0f, 0.1f, 1e-40f, 3e38f}) {
    check_taken_by("simd", dequantize_along(), {x, tensor<float>({}, {scale})});
    check_taken_by("simd", dequantize_along(), {x, tensor<float>({}, {scale}), tensor<int32_t>({}, {0})});
  }
  check_taken_by("simd", dequantize_along(1),
                 {noise<int32_t>({3, 37}, INT32_MIN, INT32_MAX, 2), noise<float>({37}, 0, 1, 3),
                  full<int32_t>({37}, 0)});
}

}  // namespace
}  // namespace sinter::test
