// The int8 operations on lengths, channels and shapes of many kinds.
#include <cmath>
#include <string>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

Tensor bytes(const Shape& dims, uint64_t seed) { return noise<int8_t>(dims, -128, 128, seed); }

template <class T>
void check_tables() {
  const Tensor table = noise<T>({256}, 0, 200, 3);
  check_taken_by("simd", LutAttrs{}, {iota<int8_t>({4, 256}, -128), table});
  check_taken_by("simd", LutAttrs{}, {iota<uint8_t>({4, 256}), table});
  for (int64_t n = 0; n < 600; n += 1 + n / 70) check_taken_by("simd", LutAttrs{}, {bytes({n}, 1), table});
  check_taken_by("simd", LutAttrs{}, {bytes({3, 30000}, 2), table});
  check_taken_by("simd", LutAttrs{}, {bytes({}, 2), table});
}

TEST(IntegerShapes, Lut) {
  check_tables<int8_t>();
  check_tables<uint8_t>();
  check_tables<int16_t>();
  check_tables<float>();
}

TEST(IntegerShapes, Clamp) {
  for (const auto& [min, max] :
       {std::pair<double, double>{-5.5, 100.5}, {-kInfinity, 0}, {3, 1e30}, {50, -50}}) {
    check_taken_by("simd", ClampAttrs{min, max}, {iota<int8_t>({3, 256}, -128)});
    for (int64_t n = 0; n < 150; ++n) check_taken_by("simd", ClampAttrs{min, max}, {bytes({n}, 1)});
  }
}

// Every pair of bytes.
const Tensor kRows = iota<int8_t>({256, 1}, -128), kColumns = iota<int8_t>({256}, -128);

// Lengths around a vector and a piece; operands that are rows, columns, one number, and repeat in between.
const std::pair<Shape, Shape> kPairs[] = {{{2, 3, 5}, {2, 3, 5}},
                                          {{7, 16}, {16}},
                                          {{16}, {7, 16}},
                                          {{3, 20000}, {20000}},
                                          {{40, 300}, {300}},
                                          {{5, 300}, {5, 1}},
                                          {{}, {4, 9}},
                                          {{4, 9}, {1, 1}},
                                          {{2, 1, 3}, {1, 4, 1}},
                                          {{2, 5, 1, 8}, {1, 6, 8}},
                                          {{0, 3}, {3}},
                                          {{1, 1}, {1}},
                                          {{2, 6, 5, 64}, {2, 1, 1, 64}},
                                          {{3, 7, 130}, {3, 7, 1}}};

template <class A>
void check_pairs(const A& a) {
  check_taken_by("simd", a, {kRows, kColumns});
  for (int64_t n = 1; n < 200; ++n) check_taken_by("simd", a, {bytes({n}, 1), bytes({n}, 2)});
  for (const auto& [left, right] : kPairs) {
    SCOPED_TRACE(testing::PrintToString(left) + " and " + testing::PrintToString(right));
    check_taken_by("simd", a, {bytes(left, 3), bytes(right, 4)});
  }
}

TEST(IntegerShapes, Add) {
  constexpr int64_t kMost = 1 << 21;
  for (const QAddAttrs& a : {QAddAttrs{0, 0, 1, 1, 0}, QAddAttrs{3, -7, 1500000, 900001, 20, -5, -128, 127},
                             QAddAttrs{-128, 127, kMost, kMost, 21, 127, -128, 127},
                             QAddAttrs{9, 9, 32767, -32768, 15, 3, -90, 100}})
    check_pairs(a);
  uint64_t seed = 1;
  for (const int64_t m : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{2047}, int64_t{2048}, int64_t{32767},
                          int64_t{32768}, int64_t{-32769}, kMost, -kMost})
    for (int64_t shift = 0; shift <= 30; ++shift, ++seed)
      check_taken_by(
          "simd", QAddAttrs{static_cast<int64_t>(seed % 256) - 128, 5, m, 77777 - m / 2, shift, 1, -128, 127},
          {bytes({1000}, seed), bytes({1000}, seed + 1)});
  // All pairs, with sums that are halfway between two results and without.
  for (const int64_t m : {int64_t{0}, int64_t{96}, int64_t{-4095}, int64_t{32767}, int64_t{40960}, kMost - 1})
    for (const int64_t shift : {0, 1, 5, 8, 9, 15, 16, 20, 30})
      for (const int64_t other : {int64_t{0}, int64_t{3 << 13}, int64_t{1234567}})
        check_taken_by("simd", QAddAttrs{-7, 5, m, other, shift, 1, -128, 127}, {kRows, kColumns});
  check_taken_by("simd", QAddAttrs{-128, -128, kMost, kMost, 30, -128, -128, 127}, {kRows, kColumns});
  check_taken_by("simd", QAddAttrs{127, 127, kMost, kMost, 0, 0, -128, 127}, {kRows, kColumns});
}

TEST(IntegerShapes, Mul) {
  for (const QMulAttrs& a : {QMulAttrs{0, 0, 0.5, 0, -128, 127}, QMulAttrs{3, -9, 0.00731, 12, -50, 99},
                             QMulAttrs{-128, -128, 1.0 / 255, -128, -128, 127}})
    check_pairs(a);
  for (const QMulAttrs& a :
       {QMulAttrs{127, 127, 16384, 127, -128, 127}, QMulAttrs{-128, 127, 16384, 1, -128, 127},
        QMulAttrs{0, 0, 0, 7, -128, 127}, QMulAttrs{0, 1, 1e-300, 7, -128, 127},
        QMulAttrs{0, 1, 1e-40, 7, -128, 127}, QMulAttrs{0, 1, 1.0 / 512, 0, -128, 127},
        QMulAttrs{-7, 1, 3.3e-5, 0, -128, 127}})
    check_taken_by("simd", a, {kRows, kColumns});
}

TEST(IntegerShapes, PRelu) {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  const Tensor x = iota<int8_t>({256, 1}, -128);
  for (const QPReluAttrs& a : {QPReluAttrs{0, 0, 1, -128, 127}, QPReluAttrs{-100, 3, 0.77, -128, 127},
                               QPReluAttrs{127, -128, 16384, -120, 100}}) {
    for (const float slope : {0.25f, -0.1f, 0.0f, 16384.0f, -16384.0f, 16385.0f, nan, inf, -inf, 1e-40f})
      check_taken_by("simd", a, {x, tensor<float>({1}, {slope})});
    for (int64_t c = 1; c < 140; ++c)
      check_taken_by("simd", a, {bytes({9, c}, 1), noise<float>({c}, -2, 2, 2)});
    check_taken_by("simd", a, {bytes({3, 700}, 1), noise<float>({700}, -2, 2, 2)});
    check_taken_by("simd", a, {bytes({40, 20, 3}, 1), tensor<float>({3}, {nan, 0.3f, -inf})});
    check_taken_by("simd", a, {bytes({}, 1), tensor<float>({1}, {0.3f})});
    check_taken_by("simd", a, {bytes({0, 4}, 1), noise<float>({4}, -2, 2, 2)});
  }
}

TEST(IntegerShapes, Pools) {
  const struct {
    Shape x;
    IntList kernel, strides, dilations, pads;
  } cases[] = {{{2, 7, 9, 3}, {2, 3}, {2, 1}, {}, {1, 0, 0, 2}},
               {{1, 8, 8, 64}, {3, 3}, {1, 1}, {}, {1, 1, 1, 1}},
               {{1, 6, 5, 130}, {2, 2}, {2, 2}, {2, 1}, {0, 1, 1, 0}},
               {{1, 40, 41, 17}, {40, 41}, {}, {}, {}},
               {{3, 300, 5}, {299}, {}, {}, {0, 2}},
               {{1, 4, 5, 6, 33}, {2, 3, 2}, {1, 2, 3}, {}, {1, 1, 1, 0, 0, 1}},
               {{0, 4, 4, 8}, {2, 2}, {}, {}, {}}};
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.x));
    for (const int64_t ceil : {0, 1}) {
      const MaxPoolAttrs max{c.kernel, c.strides, c.dilations, c.pads, ceil, 0};
      check_taken_by("simd", max, {bytes(c.x, 5)});
      for (const int64_t include : {0, 1}) {
        QAvgPoolAttrs a{c.kernel, c.strides, c.dilations, c.pads, ceil, include, -3, 5, 0.93, -120, 101};
        check_taken_by("simd", a, {bytes(c.x, 5)});
        a.x_zero = 127, a.multiplier = 16384;
        check_taken_by("simd", a, {full<int8_t>(c.x, -128)});
      }
    }
  }
  for (int64_t c = 1; c < 140; ++c) {
    QAvgPoolAttrs a;
    a.kernel = {3}, a.x_zero = 7;
    check_taken_by("simd", a, {bytes({1, 9, c}, 2)});
    MaxPoolAttrs m;
    m.kernel = {3};
    check_taken_by("simd", m, {bytes({1, 9, c}, 2)});
  }
}

TEST(IntegerShapes, Reductions) {
  const std::pair<Shape, IntList> cases[] = {{{7}, {0}},
                                             {{5, 300}, {1}},
                                             {{5, 300}, {0}},
                                             {{2, 49, 130}, {1}},
                                             {{2, 7, 7, 65}, {1, 2}},
                                             {{3, 4, 5}, {}},
                                             {{3, 4, 5}, {0, 1, 2}},
                                             {{70000}, {0}},
                                             {{600, 3}, {0}},
                                             {{1, 9, 1, 4}, {0, 1, 2}}};
  for (const auto& [dims, axes] : cases) {
    SCOPED_TRACE(testing::PrintToString(dims));
    QMeanAttrs a;
    a.axes = axes, a.x_zero = -9, a.y_zero = 4, a.multiplier = 1.9;
    check_taken_by("simd", a, {bytes(dims, 6)});
    a.x_zero = 127, a.multiplier = 0.5, a.keepdims = 0;
    check_taken_by("simd", a, {full<int8_t>(dims, -128)});
    for (const ReduceFn fn : {ReduceFn::kMax, ReduceFn::kMin})
      check_taken_by("simd", ReduceAttrs{static_cast<int64_t>(fn), axes, 1}, {bytes(dims, 6)});
  }
  for (int64_t n = 1; n < 300; n += 1 + n / 60) {
    QMeanAttrs a;
    a.axes = {1}, a.x_zero = 3;
    check_taken_by("simd", a, {bytes({3, n}, 7)});
    check_taken_by("simd", a, {bytes({2, 3, n}, 7)});
    check_taken_by("simd", ReduceAttrs{static_cast<int64_t>(ReduceFn::kMax), {1}, 1}, {bytes({3, n}, 7)});
  }
}

Tensor exponentials(double scale) {
  std::vector<uint32_t> table;
  for (int d = 0; d < 256; ++d)
    table.push_back(static_cast<uint32_t>(std::nearbyint(std::ldexp(std::exp(-d * scale), 31))));
  return tensor<uint32_t>({256}, table);
}

TEST(IntegerShapes, Softmax) {
  std::vector<uint32_t> odd(256);
  for (size_t i = 0; i < 256; ++i) odd[i] = static_cast<uint32_t>(i * i * 77777777 % 4000000007u);
  const Tensor ones = full<uint32_t>({256}, 1), none = full<uint32_t>({256}, 0),
               most = full<uint32_t>({256}, UINT32_MAX), wild = tensor<uint32_t>({256}, odd);
  uint64_t seed = 1;
  for (const auto& [multiplier, shift] : {std::pair<int64_t, int64_t>{256, 0},
                                          {255 << 16, 16},
                                          {1 << 24, 0},
                                          {1, 0},
                                          {1, 16},
                                          {12345678, 12}}) {
    QSoftmaxAttrs a;
    a.axis = 1, a.multiplier = multiplier, a.shift = shift;
    for (const int64_t n : {1, 2, 3, 7, 16, 49, 64, 65, 197, 511, 512, 513, 600, 2000})
      for (const Tensor& table : {exponentials(0.001), exponentials(0.03), exponentials(0.4), ones, wild})
        check_taken_by("simd", a, {bytes({5, n}, ++seed), table});
    for (const Tensor& table : {none, most}) {
      check_taken_by("simd", a, {bytes({3, 40}, ++seed), table});
      check_taken_by("simd", a, {bytes({1, 65536}, ++seed), table});
    }
    a.y_zero = 11, a.q_min = -7, a.q_max = 80;
    check_taken_by("simd", a, {bytes({30, 20, 1}, ++seed), exponentials(0.02)});
  }
  check_taken_by("simd", QSoftmaxAttrs{1}, {bytes({0, 4}, 1), ones});
  check_taken_by("simd", QSoftmaxAttrs{1}, {bytes({4, 0}, 1), ones});
}

TEST(IntegerShapes, Resize) {
  for (int64_t c = 1; c < 140; c += 1 + c / 20)
    check_taken_by(
        "simd", QResizeAttrs{},
        {bytes({2, 3, 4, c}, 1), noise<int32_t>({5, 2}, 0, 2.99, 2), noise<int32_t>({7, 2}, -2, 2049, 3)});
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const int64_t most = seed % 2 == 0 ? 2049 : INT32_MAX;
    check_taken_by("simd", QResizeAttrs{},
                   {bytes({1, 5, 6, 40}, seed),
                    noise<int32_t>({3, 2}, static_cast<double>(-most), static_cast<double>(most), seed),
                    noise<int32_t>({200, 2}, 0, 2049, seed)});
  }
  check_taken_by("simd", QResizeAttrs{},
                 {bytes({0, 5, 6, 3}, 1), full<int32_t>({3, 2}, 1), full<int32_t>({3, 2}, 1)});
}

TEST(IntegerShapes, InPlace) {
  for (const int64_t n : {1, 70, 256, 1000}) {
    const Tensor a = bytes({3, n}, 1), b = bytes({3, n}, 2), row = bytes({n}, 3);
    check_taken_by("simd", QAddAttrs{3, 4, 20000, 30000, 15}, {a, b});
    check_taken_by("simd", QMulAttrs{3, 4, 0.01}, {a, b});
    check_taken_by("simd", QAddAttrs{3, 4, 2000000, 30000, 20}, {a, row});
    check_taken_by("simd", QMulAttrs{3, 4, 0.01}, {row, b});
    check_taken_by("simd", QPReluAttrs{3, 4, 0.7}, {a, noise<float>({n}, -2, 2, 4)});
    check_taken_by("simd", QSoftmaxAttrs{1}, {a, exponentials(0.05)});
    check_taken_by("simd", LutAttrs{}, {a, bytes({256}, 5)});
    check_taken_by("simd", ClampAttrs{-30, 40}, {a});
  }
  check_taken_by("simd", LutAttrs{}, {bytes({256}, 1), bytes({256}, 5)});
}

}  // namespace
}  // namespace sinter::test
