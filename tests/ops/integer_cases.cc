// The int8 operations against their formulas in docs/numerics.md, written out in double and int64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/core/resize_taps.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr double kDoubleNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN(),
                kInfF = std::numeric_limits<float>::infinity();

template <class A>
int8_t clamped_byte(const A& a, double v) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(v) + static_cast<double>(a.y_zero),
                                        static_cast<double>(a.q_min), static_cast<double>(a.q_max)));
}

// Every pair of bytes, a [256, 1] with b [256].
const Tensor kAllRows = iota<int8_t>({256, 1}, -128), kAllColumns = iota<int8_t>({256}, -128);

TEST(Lut, EveryByteOfEveryType) {
  const Tensor i8 = iota<int8_t>({256}, -128), u8 = iota<uint8_t>({256});
  const auto check = [&](auto zero) {
    using T = decltype(zero);
    const Tensor table = noise<T>({256}, 0, 120, 5);
    for (const Tensor& x : {i8, u8}) {
      Tensor want = table;
      expect_equal(run_op(LutAttrs{}, {x, table})[0], want);
    }
  };
  check(int8_t{}), check(uint8_t{}), check(int16_t{}), check(uint16_t{}), check(float{});
  const Tensor table = iota<int8_t>({256}, 127, -1);  // -1 - x
  expect_equal(run_op(LutAttrs{}, {tensor<int8_t>({2, 2}, {0, 5, -128, 127}), table})[0],
               tensor<int8_t>({2, 2}, {-1, -6, 127, -128}));
  expect_equal(run_op(LutAttrs{}, {tensor<uint8_t>({}, {255}), table})[0], tensor<int8_t>({}, {-128}));
  EXPECT_TRUE(run_op(LutAttrs{}, {tensor<int8_t>({0, 3}, {}), table})[0].bytes.empty());
}

TEST(Lut, Refuses) {
  const Tensor x = full<int8_t>({3}, 1);
  expect_refused(LutAttrs{}, {x, full<int8_t>({255}, 1)});
  expect_refused(LutAttrs{}, {x, full<int8_t>({1, 256}, 1)});
  expect_refused(LutAttrs{}, {x, full<int32_t>({256}, 1)});
  expect_refused(LutAttrs{}, {x, full<double>({256}, 1)});
  expect_refused(LutAttrs{}, {full<int16_t>({3}, 1), full<int8_t>({256}, 1)});
}

QAddAttrs add(int64_t a_zero, int64_t b_zero, int64_t a_multiplier, int64_t b_multiplier, int64_t shift,
              int64_t y_zero = 0, int64_t q_min = -128, int64_t q_max = 127) {
  return {a_zero, b_zero, a_multiplier, b_multiplier, shift, y_zero, q_min, q_max};
}

TEST(QAdd, EveryPair) {
  constexpr int64_t kMost = 1 << 21;
  for (const QAddAttrs& a :
       {add(0, 0, 1, 1, 0), add(0, 0, 1, 1, 1), add(3, -7, 1500000, 900001, 20, -5),
        add(-128, 127, kMost, kMost, 21, 127), add(127, -128, -kMost, kMost, 30, -128),
        add(-128, -128, kMost, kMost, 0), add(-128, -128, kMost, kMost, 30, 1, -3, 9), add(5, 5, 3, -1, 2),
        add(0, 0, 0, 0, 7, 3), add(1, 2, 12345, -54321, 16, 0, -100, -100)}) {
    const auto got = run_op(a, {kAllRows, kAllColumns})[0].values<int8_t>();
    ASSERT_EQ(got.size(), 65536u);
    for (int64_t u = -128; u < 128; ++u)
      for (int64_t v = -128; v < 128; ++v) {
        const int64_t sum = (u - a.a_zero) * a.a_multiplier + (v - a.b_zero) * a.b_multiplier;
        ASSERT_EQ(got[static_cast<size_t>((u + 128) * 256 + v + 128)],
                  clamped_byte(a, std::ldexp(static_cast<double>(sum), -static_cast<int>(a.shift))))
            << u << " and " << v;
      }
  }
}

TEST(QAdd, Broadcasts) {
  const QAddAttrs a = add(0, 0, 1, 1, 0);
  expect_equal(run_op(a, {tensor<int8_t>({2, 1}, {1, 100}), tensor<int8_t>({3}, {-1, 0, 50})})[0],
               tensor<int8_t>({2, 3}, {0, 1, 51, 99, 100, 127}));
  expect_equal(run_op(a, {tensor<int8_t>({}, {1}), tensor<int8_t>({2}, {-1, 0})})[0],
               tensor<int8_t>({2}, {0, 1}));
}

TEST(QAdd, Refuses) {
  const Tensor x = full<int8_t>({3}, 1);
  constexpr int64_t kMost = 1 << 21;
  for (const QAddAttrs& a :
       {add(128, 0, 1, 1, 0), add(0, -129, 1, 1, 0), add(0, 0, kMost + 1, 1, 0), add(0, 0, 1, -kMost - 1, 0),
        add(0, 0, INT64_MIN, 1, 0), add(0, 0, 1, 1, -1), add(0, 0, 1, 1, 31), add(0, 0, 1, 1, 0, 128),
        add(0, 0, 1, 1, 0, 0, 5, 4), add(0, 0, 1, 1, 0, 0, -129, 4), add(0, 0, 1, 1, 0, 0, 5, 128)})
    expect_refused(a, {x, x});
  expect_refused(add(0, 0, 1, 1, 0), {x, full<uint8_t>({3}, 1)});
  expect_refused(add(1, 0, 1, 1, 0), {full<int16_t>({3}, 1), full<int16_t>({3}, 1)});
  expect_refused(add(0, 0, 1, 1, 0), {x, full<int8_t>({2}, 1)});
}

TEST(QMul, EveryPair) {
  for (const QMulAttrs& a :
       {QMulAttrs{0, 0, 1, 0, -128, 127}, QMulAttrs{0, 0, 0.5, 0, -128, 127},
        QMulAttrs{3, -9, 0.00731, 12, -50, 99}, QMulAttrs{-128, -128, 1.0 / 255, -128, -128, 127},
        QMulAttrs{127, 127, 16384, 127, -128, 127}, QMulAttrs{0, 0, 0, 7, -128, 127},
        QMulAttrs{0, 1, 1e-300, 7, -128, 127}, QMulAttrs{0, 1, 1.0 / 512, 0, -128, 127}}) {
    const auto got = run_op(a, {kAllRows, kAllColumns})[0].values<int8_t>();
    ASSERT_EQ(got.size(), 65536u);
    const auto m = static_cast<float>(a.multiplier);
    for (int64_t u = -128; u < 128; ++u)
      for (int64_t v = -128; v < 128; ++v) {
        const float number = static_cast<float>((u - a.a_zero) * (v - a.b_zero)) * m;
        ASSERT_EQ(got[static_cast<size_t>((u + 128) * 256 + v + 128)], clamped_byte(a, number))
            << u << " and " << v;
      }
  }
}

TEST(QMul, Refuses) {
  const Tensor x = full<int8_t>({3}, 1);
  for (const double m : {kDoubleNan, kInfinity, -kInfinity, -1e-9, 16385.0}) {
    expect_refused(QMulAttrs{0, 0, m, 0, -128, 127}, {x, x});
    expect_refused(QPReluAttrs{0, 0, m, -128, 127}, {x, full<float>({1}, 1)});
    expect_refused(QMeanAttrs{{0}, 1, 0, 0, m, -128, 127}, {x});
  }
  expect_refused(QMulAttrs{128, 0, 1, 0, -128, 127}, {x, x});
  expect_refused(QMulAttrs{0, -129, 1, 0, -128, 127}, {x, x});
  expect_refused(QMulAttrs{0, 0, 1, 200, -128, 127}, {x, x});
  expect_refused(QMulAttrs{0, 0, 1, 0, 1, 0}, {x, x});
  expect_refused(QMulAttrs{0, 0, 1, 0, -128, 127}, {x, full<float>({3}, 1)});
}

TEST(QPRelu, EveryByte) {
  const std::vector<float> slopes{0.25f, -0.25f, 0,     1.5f,   16384, -16384,
                                  0.1f,  kNanF,  kInfF, -kInfF, 16385, -1e30f};
  const auto c = static_cast<int64_t>(slopes.size());
  Tensor x = full<int8_t>({256, c}, 0);
  for (size_t i = 0; i < x.bytes.size(); ++i) x.bytes[i] = static_cast<std::byte>(i / slopes.size());
  for (const QPReluAttrs& a : {QPReluAttrs{0, 0, 1, -128, 127}, QPReluAttrs{-100, 3, 0.77, -128, 127},
                               QPReluAttrs{127, -128, 2.5, -120, 100}, QPReluAttrs{5, 0, 0, -128, 127}}) {
    const auto v = x.values<int8_t>();
    const auto check = [&](const Tensor& s, auto slope_of) {
      const auto got = run_op(a, {x, s})[0].values<int8_t>();
      ASSERT_EQ(got.size(), v.size());
      for (size_t i = 0; i < v.size(); ++i) {
        const auto d = static_cast<int32_t>(v[i] - a.x_zero);
        const float slope = slope_of(i), below = std::fabs(slope) <= 16384 ? slope : 0.0f;
        ASSERT_EQ(got[i],
                  clamped_byte(a, static_cast<float>(d) * (d < 0 ? below : static_cast<float>(a.multiplier))))
            << +v[i] << " by " << slope;
      }
    };
    check(tensor<float>({c}, slopes), [&](size_t i) { return slopes[i % slopes.size()]; });
    check(tensor<float>({1}, {0.3f}), [](size_t) { return 0.3f; });
  }
  const QPReluAttrs a{0, 0, 1, -128, 127};
  expect_refused(a, {x, full<float>({c - 1}, 1)});
  expect_refused(a, {x, full<float>({1, c}, 1)});
  expect_refused(a, {x, full<double>({c}, 1)});
  expect_refused(a, {tensor<int8_t>({}, {1}), full<float>({2}, 1)});
}

TEST(QAvgPool, WindowsAndDivisors) {
  QAvgPoolAttrs a;
  a.kernel = {2, 3}, a.strides = {2, 1}, a.pads = {1, 0, 0, 2}, a.x_zero = 5, a.y_zero = -3,
  a.multiplier = 0.83;
  constexpr int64_t kH = 7, kW = 9, kC = 70;
  const Tensor x = noise<int8_t>({2, kH, kW, kC}, -128, 128, 3);
  const auto v = x.values<int8_t>();
  for (const int64_t include : {0, 1})
    for (const int64_t ceil : {0, 1}) {
      a.count_include_pad = include, a.ceil_mode = ceil;
      const Tensor y = run_op(a, {x})[0];
      const auto got = y.values<int8_t>();
      const int64_t height = y.dims[1], width = y.dims[2];
      ASSERT_EQ(height, 4);
      ASSERT_EQ(width, 9);
      for (int64_t n = 0; n < 2; ++n)
        for (int64_t i = 0; i < height; ++i)
          for (int64_t j = 0; j < width; ++j)
            for (int64_t c = 0; c < kC; ++c) {
              int32_t sum = 0, inside = 0, padded = 0;
              for (int64_t p = 2 * i - 1; p < 2 * i + 1; ++p)
                for (int64_t q = j; q < j + 3; ++q) {
                  padded += p < kH && q < kW + 2 ? 1 : 0;
                  if (p < 0 || p >= kH || q >= kW) continue;
                  sum += v[static_cast<size_t>(((n * kH + p) * kW + q) * kC + c)] - 5, ++inside;
                }
              const float m = static_cast<float>(a.multiplier / (include != 0 ? padded : inside));
              ASSERT_EQ(got[static_cast<size_t>(((n * height + i) * width + j) * kC + c)],
                        clamped_byte(a, static_cast<float>(sum) * m));
            }
    }
  const Tensor small = full<int8_t>({1, 4, 4, 1}, 1);
  QAvgPoolAttrs bad = a;
  bad.multiplier = kDoubleNan;
  expect_refused(bad, {small});
  bad = a, bad.x_zero = 300;
  expect_refused(bad, {small});
  bad = a, bad.kernel = {1 << 12, 1 << 12}, bad.pads = {4096, 4096, 4096, 4096}, bad.count_include_pad = 1;
  expect_refused(bad, {small});
  expect_refused(a, {full<uint8_t>({1, 4, 4, 1}, 1)});
  expect_refused(a, {full<float>({1, 4, 4, 1}, 1)});
}

TEST(QMean, AnyAxes) {
  const Tensor x = noise<int8_t>({3, 5, 7, 9}, -128, 128, 11);
  const auto v = x.values<int8_t>();
  QMeanAttrs a;
  a.x_zero = -9, a.y_zero = 4, a.multiplier = 1.9;
  for (const auto& axes : {std::vector<int64_t>{3}, {1, 2}, {2, 1}, {0, 2}, {0, 1, 2, 3}, {}}) {
    a.axes = IntList(std::span<const int64_t>(axes));
    int64_t count = 1;
    Shape kept{3, 5, 7, 9};
    for (const int64_t k : axes) count *= kept[static_cast<size_t>(k)], kept[static_cast<size_t>(k)] = 1;
    std::vector<int32_t> sums(
        static_cast<size_t>(std::accumulate(kept.begin(), kept.end(), 1, std::multiplies<>())));
    for (int64_t i = 0; i < static_cast<int64_t>(v.size()); ++i) {
      const int64_t at[] = {i / 315, i / 63 % 5, i / 9 % 7, i % 9};
      int64_t to = 0;
      for (size_t k = 0; k < 4; ++k) to = to * kept[k] + (kept[k] == 1 ? 0 : at[k]);
      sums[static_cast<size_t>(to)] += v[static_cast<size_t>(i)] + 9;
    }
    const float m = static_cast<float>(1.9 / static_cast<double>(count));
    std::vector<int8_t> want;
    for (const int32_t s : sums) want.push_back(clamped_byte(a, static_cast<float>(s) * m));
    a.keepdims = 1;
    expect_equal(run_op(a, {x})[0], tensor<int8_t>(kept, want));
    a.keepdims = 0;
    EXPECT_EQ(run_op(a, {x})[0].values<int8_t>(), want);
  }
  a.axes = {0};
  expect_refused(a, {tensor<int8_t>({0, 3}, {})});
  expect_refused(a, {full<float>({2}, 1)});
  a.axes = {1};
  expect_refused(a, {full<int8_t>({2}, 1)});
  a.axes = {0, 0};
  expect_refused(a, {full<int8_t>({2}, 1)});
}

// As docs/numerics.md defines it for converters.
Tensor table_of_exponentials(double scale) {
  std::vector<uint32_t> table;
  for (int d = 0; d < 256; ++d)
    table.push_back(static_cast<uint32_t>(std::nearbyint(std::ldexp(std::exp(-d * scale), 31))));
  return tensor<uint32_t>({256}, table);
}

TEST(QSoftmax, WithinHalfAStepOfTheExactResult) {
  for (const double scale : {0.001, 0.02, 0.1, 0.7, 5.0})
    for (const Shape& dims : {Shape{7, 1}, {5, 49}, {3, 197}, {2, 3000}}) {
      const int64_t n = dims[1];
      const Tensor x = noise<int8_t>(dims, -128, 128, static_cast<uint64_t>(n));
      const auto v = x.values<int8_t>();
      QSoftmaxAttrs a;
      a.axis = 1;
      for (const auto& [multiplier, shift] :
           {std::pair<int64_t, int64_t>{256, 0}, {255 << 16, 16}, {12345678, 12}}) {
        a.multiplier = multiplier, a.shift = shift;
        const double steps = std::ldexp(static_cast<double>(multiplier), -static_cast<int>(shift));
        const auto got = run_op(a, {x, table_of_exponentials(scale)})[0].values<int8_t>();
        ASSERT_EQ(got.size(), v.size());
        for (int64_t row = 0; row < dims[0]; ++row) {
          double sum = 0;
          for (int64_t i = 0; i < n; ++i) sum += std::exp(scale * v[static_cast<size_t>(row * n + i)]);
          for (int64_t i = 0; i < n; ++i) {
            const double exact = std::exp(scale * v[static_cast<size_t>(row * n + i)]) / sum * steps - 128;
            ASSERT_NEAR(got[static_cast<size_t>(row * n + i)], std::min(exact, 127.0), 0.501);
          }
        }
      }
    }
}

TEST(QSoftmax, HalvesAndOddTables) {
  QSoftmaxAttrs a;
  a.y_zero = 0;
  // Equal elements: 256 / n; 256 * 1 / 512 = 0.5 -> 0 and 3 * 256 / 512 = 1.5 -> 2.
  Tensor table = full<uint32_t>({256}, 1);
  EXPECT_EQ(run_op(a, {full<int8_t>({512}, 3), table})[0].values<int8_t>(), std::vector<int8_t>(512, 0));
  a.multiplier = 768;
  EXPECT_EQ(run_op(a, {full<int8_t>({512}, 3), table})[0].values<int8_t>(), std::vector<int8_t>(512, 2));
  // Another axis, bounds, and entries that are nothing or as large as can be.
  a.q_min = -5, a.q_max = 1;
  EXPECT_EQ(run_op(a, {full<int8_t>({512, 2}, 3), table})[0].values<int8_t>(), std::vector<int8_t>(1024, 1));
  EXPECT_EQ(run_op(a, {full<int8_t>({4}, 3), full<uint32_t>({256}, 0)})[0].values<int8_t>(),
            std::vector<int8_t>(4, 0));
  a = {};
  a.multiplier = 1 << 24, a.shift = 16, a.y_zero = 0;
  EXPECT_EQ(run_op(a, {full<int8_t>({1 << 16}, -128), full<uint32_t>({256}, UINT32_MAX)})[0].values<int8_t>(),
            std::vector<int8_t>(1 << 16, 0));
  EXPECT_EQ(run_op(a, {full<int8_t>({2}, -128), full<uint32_t>({256}, UINT32_MAX)})[0].values<int8_t>(),
            std::vector<int8_t>(2, 127));
  EXPECT_TRUE(run_op(a, {tensor<int8_t>({0, 3}, {}), table})[0].bytes.empty());
}

TEST(QSoftmax, Refuses) {
  const Tensor x = full<int8_t>({3}, 1), table = full<uint32_t>({256}, 1);
  const auto refuse = [&](auto change) {
    QSoftmaxAttrs a;
    change(a);
    expect_refused(a, {x, table});
  };
  refuse([](auto& a) { a.axis = 1; });
  refuse([](auto& a) { a.axis = -1; });
  refuse([](auto& a) { a.multiplier = 0; });
  refuse([](auto& a) { a.multiplier = (1 << 24) + 1; });
  refuse([](auto& a) { a.shift = 17; });
  refuse([](auto& a) { a.shift = -1; });
  refuse([](auto& a) { a.y_zero = 128; });
  expect_refused(QSoftmaxAttrs{}, {full<uint8_t>({3}, 1), table});
  expect_refused(QSoftmaxAttrs{}, {x, full<uint32_t>({255}, 1)});
  expect_refused(QSoftmaxAttrs{}, {x, full<float>({256}, 1)});
  expect_refused(QSoftmaxAttrs{}, {full<int8_t>({65537}, 1), table});
}

// The tables of one axis, as a converter makes them.
Tensor taps_of(const ResizeAttrs& a, const TensorView& x, int axis) {
  ResizeAxis axes[kMaxRank];
  resize_axes(a, x, axes);
  std::vector<std::byte> room(1 << 16);
  BumpArena arena(room);
  take_resize_tables(arena, &axes[axis]);
  fill_resize_tables(a, &axes[axis]);
  std::vector<int32_t> taps(static_cast<size_t>(2 * axes[axis].out));
  EXPECT_TRUE(fixed_resize_taps(axes[axis], taps.data()));
  return tensor<int32_t>({axes[axis].out, 2}, taps);
}

// The exact interpolation of numbers in double.
TEST(QResize, WithinThreeQuartersOfTheExactResult) {
  const Tensor x = noise<int8_t>({2, 5, 7, 9}, -128, 128, 3);
  const auto v = x.values<int8_t>();
  const Tensor numbers = tensor<double>(x.dims, std::vector<double>(v.begin(), v.end()));
  TensorView view;
  view.dtype = DType::kInt8;
  view.set_shape(x.dims);
  for (const auto& [h, w] : {std::pair<int64_t, int64_t>{10, 14}, {5, 7}, {13, 3}, {1, 20}, {2, 1}})
    for (const ResizeCoordinates how :
         {ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAlignCorners, ResizeCoordinates::kAsymmetric,
          ResizeCoordinates::kPytorchHalfPixel}) {
      ResizeAttrs a;
      a.mode = static_cast<int64_t>(ResizeMode::kLinear), a.coordinates = static_cast<int64_t>(how);
      a.sizes = {2, h, w, 9}, a.scales = {1, static_cast<double>(h) / 5, static_cast<double>(w) / 7, 1};
      const auto exact = run_op(a, {numbers})[0].values<double>();
      const auto got =
          run_op(QResizeAttrs{}, {x, taps_of(a, view, 1), taps_of(a, view, 2)})[0].values<int8_t>();
      ASSERT_EQ(got.size(), exact.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], exact[i], 0.75);
    }
}

TEST(QResize, HalvesOddTablesAndRefusals) {
  const Tensor x = tensor<int8_t>({1, 1, 4, 1}, {1, 2, 3, -4}), row = tensor<int32_t>({1, 2}, {0, 0});
  // Halves go to the even number; what is outside counts as the edge.
  expect_equal(
      run_op(QResizeAttrs{},
             {x, row, tensor<int32_t>({6, 2}, {0, 1024, 1, 1024, 2, 1024, 3, 1024, -9, -7, 99, 4096})})[0],
      tensor<int8_t>({1, 1, 6, 1}, {2, 2, 0, -4, 1, -4}));
  expect_equal(run_op(QResizeAttrs{}, {x, tensor<int32_t>({1, 2}, {INT32_MIN, INT32_MAX}),
                                       tensor<int32_t>({1, 2}, {1, 4096})})[0],
               tensor<int8_t>({1, 1, 1, 1}, {3}));
  expect_refused(QResizeAttrs{}, {x, row, full<int64_t>({6, 2}, 0)});
  expect_refused(QResizeAttrs{}, {x, row, full<int32_t>({6, 3}, 0)});
  expect_refused(QResizeAttrs{}, {x, full<int32_t>({2}, 0), row});
  expect_refused(QResizeAttrs{}, {full<int8_t>({1, 4, 1}, 0), row, row});
  expect_refused(QResizeAttrs{}, {full<uint8_t>({1, 1, 4, 1}, 0), row, row});
  expect_refused(QResizeAttrs{}, {tensor<int8_t>({1, 0, 4, 1}, {}), row, row});
}

}  // namespace
}  // namespace sinter::test
