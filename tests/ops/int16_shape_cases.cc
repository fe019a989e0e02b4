// The int16 operations on lengths, channels and shapes of many kinds.
#include <cmath>
#include <tuple>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"
#include "tests/ops/quantized_test.h"

namespace sinter::test {
namespace {

constexpr int64_t kWord = static_cast<int64_t>(DType::kInt16), kByte = static_cast<int64_t>(DType::kInt8);

Tensor noisy_words(const Shape& dims, uint64_t seed) { return noise<int16_t>(dims, -32768, 32767.9, seed); }
const Tensor kAll = iota<int16_t>({65536}, -32768);

const std::pair<Shape, Shape> kWordPairs[] = {
    {{2, 3, 5}, {2, 3, 5}}, {{7, 16}, {16}},    {{3, 20000}, {20000}},
    {{40, 300}, {300}},     {{5, 300}, {5, 1}}, {{}, {4, 9}},
    {{2, 1, 3}, {1, 4, 1}}, {{0, 3}, {3}},      {{2, 6, 5, 64}, {2, 1, 1, 64}}};

template <class A>
void check_word_pairs(const A& a) {
  for (int64_t n = 1; n < 80; ++n) check_taken_by("simd", a, {noisy_words({n}, 1), noisy_words({n}, 2)});
  for (const auto& [left, right] : kWordPairs)
    check_taken_by("simd", a, {noisy_words(left, 3), noisy_words(right, 4)});
  check_taken_by("simd", a, {kAll, full<int16_t>({1}, -32768)});
  check_taken_by("simd", a, {full<int16_t>({}, 32767), kAll});
}

TEST(Int16Shapes, AddAndMul) {
  for (const QAddAttrs& a :
       {QAddAttrs{0, 0, 1, 1, 1, 0, -32768, 32767}, QAddAttrs{0, 0, 1500000, -900001, 20, 0, -30000, 32767},
        QAddAttrs{0, 0, 1 << 21, 1 << 21, 0, 0, -32768, 32767}})
    check_word_pairs(a);
  for (const QMulAttrs& a : {QMulAttrs{0, 0, 0x1p-15, 0, -32768, 32767}, QMulAttrs{0, 0, 16384, 0, -9, 12000},
                             QMulAttrs{0, 0, 1e-40, 0, -32768, 32767}})
    check_word_pairs(a);
}

TEST(Int16Shapes, PRelu) {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  const QPReluAttrs a{0, 0, 0.77, -30000, 32767};
  for (const float slope : {0.25f, -0.1f, 16384.0f, 16385.0f, nan, -inf})
    check_taken_by("simd", a, {kAll, tensor<float>({1}, {slope})});
  for (int64_t c = 1; c < 40; ++c)
    check_taken_by("simd", a, {noisy_words({9, c}, 1), noise<float>({c}, -2, 2, 2)});
  check_taken_by("simd", a, {noisy_words({40, 20, 3}, 1), tensor<float>({3}, {nan, 0.3f, -inf})});
  check_taken_by("simd", a, {noisy_words({3, 700}, 1), noise<float>({700}, -2, 2, 2)});
}

TEST(Int16Shapes, Means) {
  for (const auto& [dims, axes] : {std::pair<Shape, IntList>{{7}, {0}},
                                   {{5, 300}, {1}},
                                   {{5, 300}, {0}},
                                   {{2, 49, 130}, {1}},
                                   {{2, 7, 7, 65}, {1, 2}},
                                   {{3, 4, 5}, {}},
                                   {{65536}, {0}}}) {
    const QMeanAttrs a{axes, 1, 0, 0, 1.9, -32768, 30000};
    check_taken_by("simd", a, {noisy_words(dims, 6)});
    check_taken_by("simd", a, {full<int16_t>(dims, -32768)});
  }
  for (const int64_t include : {0, 1})
    for (int64_t c = 1; c < 40; ++c) {
      const QAvgPoolAttrs a{{2, 3}, {2, 1}, {}, {1, 0, 0, 2}, 1, include, 0, 0, 0.93, -32000, 32767};
      check_taken_by("simd", a, {noisy_words({2, 7, 9, c}, 5)});
    }
}

TEST(Int16Shapes, Resize) {
  const Tensor rows = tensor<int32_t>({3, 2}, {0, 1000, 2, 2048, 99, 7}),
               columns = tensor<int32_t>({4, 2}, {0, 0, 3, 1024, -5, 2047, 6, 9999});
  for (int64_t c = 1; c < 40; ++c)
    check_taken_by("simd", QResizeAttrs{}, {noisy_words({2, 5, 7, c}, 6), rows, columns});
}

TEST(Int16Shapes, Requantize) {
  for (const QRequantizeAttrs& a : {QRequantizeAttrs{0, 1.0 / 256, 3, -100, 127, kByte},
                                    QRequantizeAttrs{0, 0.731, 0, -32768, 32767, kWord},
                                    QRequantizeAttrs{0, 16384, 0, -32768, 32767, kWord},
                                    QRequantizeAttrs{0, 16384, -128, -128, 127, kByte}}) {
    check_taken_by("simd", a, {kAll});
    for (int64_t n = 0; n < 60; ++n) check_taken_by("simd", a, {noisy_words({n}, 1)});
  }
  for (const QRequantizeAttrs& a :
       {QRequantizeAttrs{-5, 200.5, 0, -32768, 30000, kWord}, QRequantizeAttrs{7, 1.5, -9, -128, 127, kByte}})
    for (int64_t n = 0; n < 600; n += 1 + n / 9)
      check_taken_by("simd", a, {noise<int8_t>({n}, -128, 128, 2)});
}

TEST(Int16Shapes, Tables) {
  for (const int64_t n : {256, 512, 4096}) {
    const Tensor table =
        noise<int32_t>({n + 1}, -static_cast<double>(n) * 16500, static_cast<double>(n) * 16500, 3);
    check_taken_by("simd", QTableAttrs{-32768, 32767}, {kAll, table});
    check_taken_by("simd", QTableAttrs{-20, 3000}, {kAll, full<int32_t>({n + 1}, INT32_MIN)});
    for (int64_t m = 0; m < 60; ++m)
      check_taken_by("simd", QTableAttrs{-32768, 32767}, {noisy_words({m}, 1), table});
  }
}

// Multipliers for sums of about `sum`, and biases; every result type.
template <class A>
void check_product(A a, const Shape& x, const Shape& w, int64_t columns, double sum, uint64_t seed) {
  quantized::Operands o = quantized::operands<int16_t>(x, w, columns, sum, seed);
  a.x_zero = a.y_zero = 0;
  for (const auto& [to, low, high] : {std::tuple<DType, int64_t, int64_t>{DType::kInt16, -32000, 32767},
                                      {DType::kInt8, -100, 127},
                                      {DType::kFloat32, 0, 0}}) {
    a.to = static_cast<int64_t>(to), a.q_min = low, a.q_max = high;
    check_taken_by("simd", a, o.tensors());
  }
}

TEST(Int16Shapes, FullyConnected) {
  for (int64_t k = 1; k < 140; k += 1 + k / 8)
    for (const int64_t n : {1, 2, 7, 65}) check_product(QFullyConnectedAttrs{}, {5, k}, {n, k}, n, 1e5, 1);
  // Sums that leave int32, and biases that do.
  check_product(QFullyConnectedAttrs{}, {17, 9000}, {70, 9000}, 70, 1e7, 2);
  QFullyConnectedAttrs a{};
  a.to = kWord, a.q_min = -32768, a.q_max = 32767;
  check_taken_by("simd", a,
                 {full<int16_t>({2, 9000}, -32768), full<int8_t>({3, 9000}, -128),
                  tensor<int64_t>({3}, {int64_t{1} << 50, 0, -(int64_t{1} << 50)}), full<float>({3}, 1e-9f)});
}

// The largest sums that int32 holds, and the next ones.
TEST(Int16Shapes, SumsAtTheBoundOfInt32) {
  for (const int64_t k : {516, 517, 1020, 1021})
    for (const int64_t weight : {-127, 127})
      for (const int64_t beyond : {0, 1}) {
        const int64_t most = INT32_MAX - 516 * 127 * 32768 + beyond;
        std::vector<int8_t> w(static_cast<size_t>(9 * k));
        for (int64_t c = 0; c < 9; ++c)
          for (int64_t i = 0; i < 516; ++i)
            w[static_cast<size_t>(c * k + i)] = static_cast<int8_t>(c % 2 == 0 ? weight : -weight);
        QFullyConnectedAttrs a{};
        a.to = static_cast<int64_t>(DType::kFloat32);
        std::vector<int64_t> bias;
        for (int64_t c = 0; c < 9; ++c) bias.push_back((c % 2 == 0) == (weight < 0) ? most : -most);
        check_taken_by("simd", a,
                       {full<int16_t>({9, k}, -32768), tensor<int8_t>({9, k}, w), tensor<int64_t>({9}, bias),
                        full<float>({9}, 0x1p-10f)});
      }
}

TEST(Int16Shapes, Conv) {
  for (const int64_t group : {1, 2, 4}) {
    QConvAttrs a{};
    a.strides = {1, 2}, a.dilations = {2, 1}, a.pads = {1, 0, 2, 1}, a.group = group;
    check_product(a, {2, 6, 7, 8}, {12, 3, 2, 8 / group}, 12, 1e5, 3);
  }
  QConvAttrs a{};
  a.strides = a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
  check_product(a, {1, 9, 9, 33}, {65, 1, 1, 33}, 65, 1e5, 4);
  for (const int64_t columns : {1, 8, 17, 24, 33, 40})
    check_product(a, {2, 13, 11, 24}, {columns, 1, 1, 24}, columns, 1e5, 7);
  a.strides = a.dilations = {1}, a.pads = {1, 1};
  check_product(a, {2, 50, 3}, {5, 3, 3}, 5, 1e5, 5);
  a.strides = a.dilations = {1, 1, 1}, a.pads = {1, 1, 1, 1, 1, 1};
  check_product(a, {1, 4, 5, 6, 3}, {5, 3, 3, 3, 3}, 5, 1e5, 6);
}

// Windows that are read in the input, up to its last number; biases that need sums in int64 too.
TEST(Int16Shapes, ConvOfWholeLines) {
  for (const int64_t channels : {1, 3, 4})
    for (const int64_t stride : {1, 2})
      for (const double bias : {1e5, 1e12}) {
        QConvAttrs a{};
        a.strides = {1, stride}, a.dilations = {1 + channels % 2, 1}, a.pads = {0, 0, 1, 0};
        check_product(a, {2, 8, 40 * stride + 3, channels}, {17, 3, 5, channels}, 17, bias, 8);
      }
}

TEST(Int16Shapes, DepthwiseConv) {
  for (int64_t c = 1; c < 40; ++c) {
    QDepthwiseConvAttrs a{};
    a.strides = {2, 1}, a.dilations = {1, 2}, a.pads = {1, 2, 0, 1};
    check_product(a, {2, 6, 7, c}, {3, 2, c}, c, 1e5, 7);
  }
  // Even and odd numbers of taps, one step and two.
  for (const int64_t c : {7, 8, 16, 24, 37, 64})
    for (const int64_t kernel : {1, 2, 3, 5}) {
      QDepthwiseConvAttrs a{};
      a.strides = {1, 1 + c % 2}, a.dilations = {1, 1 + kernel % 2}, a.pads = {1, kernel / 2, 0, kernel};
      check_product(a, {2, 9, 14, c}, {kernel, kernel, c}, c, 1e5, 8);
    }
  // Biases that leave int32 together with the sum.
  QDepthwiseConvAttrs a{};
  a.strides = a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
  a.to = kWord, a.q_min = -32768, a.q_max = 32767;
  check_taken_by(
      "simd", a,
      {noisy_words({2, 6, 7, 5}, 1), noise<int8_t>({2, 2, 5}, -128, 127, 2),
       tensor<int64_t>({5}, {int64_t{1} << 50, 0, -5, 7, -(int64_t{1} << 31)}), full<float>({5}, 1e-4f)});
  // A few of many channels.
  std::vector<int64_t> biases(40, -1234);
  biases[3] = int64_t{3} << 30, biases[7] = -(int64_t{1} << 40), biases[11] = INT64_MAX;
  a.pads = {1, 1, 1, 1};
  check_taken_by("simd", a,
                 {noisy_words({2, 6, 17, 40}, 1), noise<int8_t>({3, 3, 40}, -128, 127, 2),
                  tensor<int64_t>({40}, biases), full<float>({40}, 1e-6f)});
}

}  // namespace
}  // namespace sinter::test
