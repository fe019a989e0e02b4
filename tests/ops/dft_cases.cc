// Dft against the sum that defines it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

struct Signal {
  std::vector<double> re, im;
};

Signal transform(const Signal& x, bool inverse) {
  const size_t n = x.re.size();
  Signal y{std::vector<double>(n), std::vector<double>(n)};
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < n; ++j) {
      const long double angle = (inverse ? 2 : -2) * 3.14159265358979323846264338328L *
                                static_cast<long double>(k * j % n) / static_cast<long double>(n);
      const double c = static_cast<double>(std::cos(angle)), s = static_cast<double>(std::sin(angle));
      y.re[k] += x.re[j] * c - x.im[j] * s;
      y.im[k] += x.re[j] * s + x.im[j] * c;
    }
  for (size_t k = 0; inverse && k < n; ++k)
    y.re[k] /= static_cast<double>(n), y.im[k] /= static_cast<double>(n);
  return y;
}

// One signal [1, count, parts] of doubles: the first `length` values, zeros beyond.
Signal signal_of(const Tensor& x, size_t length) {
  const auto v = x.values<double>();
  const auto count = static_cast<size_t>(x.dims[1]), parts = static_cast<size_t>(x.dims[2]);
  Signal s{std::vector<double>(length), std::vector<double>(length)};
  for (size_t i = 0; i < std::min(count, length); ++i) {
    s.re[i] = v[i * parts];
    if (parts == 2) s.im[i] = v[i * parts + 1];
  }
  return s;
}

void expect_signal(const Tensor& y, const Signal& want, size_t count, size_t parts, double tolerance) {
  ASSERT_EQ(y.dims, (Shape{1, static_cast<int64_t>(count), static_cast<int64_t>(parts)}));
  const auto v = y.values<double>();
  for (size_t k = 0; k < count; ++k) {
    EXPECT_NEAR(v[k * parts], want.re[k], tolerance) << k;
    if (parts == 2) {
      EXPECT_NEAR(v[k * parts + 1], want.im[k], tolerance) << k;
    }
  }
}

TEST(Dft, AnyLengthBothDirections) {
  for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 31, 64, 97, 100, 127, 128, 240, 400}) {
    SCOPED_TRACE(n);
    for (const int64_t parts : {1, 2}) {
      const Tensor x = noise<double>({1, n, parts}, -1, 1, 7);
      for (const int64_t inverse : {0, 1}) {
        const Tensor y = run_op(DftAttrs{.axis = 1, .inverse = inverse}, {x})[0];
        expect_signal(y, transform(signal_of(x, static_cast<size_t>(n)), inverse != 0),
                      static_cast<size_t>(n), 2, 1e-12);
      }
    }
  }
}

TEST(Dft, OneSidedIsTheFirstHalf) {
  for (const int64_t n : {1, 2, 3, 8, 9, 20}) {
    const Tensor x = noise<double>({1, n, 1}, -1, 1, 7);
    const Tensor y = run_op(DftAttrs{.axis = 1, .onesided = 1}, {x})[0];
    expect_signal(y, transform(signal_of(x, static_cast<size_t>(n)), false), static_cast<size_t>(n / 2 + 1),
                  2, 1e-12);
    // And back again.
    const Tensor back = run_op(DftAttrs{.axis = 1, .length = n, .inverse = 1, .onesided = 1}, {y})[0];
    expect_near(back, x, 1e-12, 1e-12);
  }
  // Without a length, the inverse of a one-sided spectrum of n bins has 2 (n - 1) values.
  EXPECT_EQ(run_op(DftAttrs{.axis = 0, .inverse = 1, .onesided = 1}, {full<float>({5, 2}, 1)})[0].dims,
            (Shape{8, 1}));
}

TEST(Dft, LengthCutsOrPads) {
  const Tensor x = noise<double>({1, 10, 2}, -1, 1, 7);
  for (const int64_t n : {1, 7, 8, 16, 23}) {
    const Tensor y = run_op(DftAttrs{.axis = 1, .length = n}, {x})[0];
    expect_signal(y, transform(signal_of(x, static_cast<size_t>(n)), false), static_cast<size_t>(n), 2,
                  1e-12);
  }
}

TEST(Dft, AnyAxis) {
  // Along axis 0 of [4, 2, 1]: the columns are (1, 2, 3, 4) and (1, 0, 0, 0).
  const Tensor x = tensor<float>({4, 2, 1}, {1, 1, 2, 0, 3, 0, 4, 0});
  expect_near(run_op(DftAttrs{.axis = 0}, {x})[0],
              tensor<float>({4, 2, 2}, {10, 0, 1, 0, -2, 2, 1, 0, -2, 0, 1, 0, -2, -2, 1, 0}));
  expect_near(run_op(DftAttrs{.axis = 1}, {x})[0],
              tensor<float>({4, 2, 2}, {2, 0, 0, 0, 2, 0, 2, 0, 3, 0, 3, 0, 4, 0, 4, 0}));
}

// numpy.fft.fft of np.arange(6) - 2.5, as float32.
TEST(Dft, AgreesWithNumPy) {
  const Tensor x = tensor<float>({6, 1}, {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f});
  expect_near(run_op(DftAttrs{.axis = 0}, {x})[0],
              tensor<float>({6, 2}, {0, 0, -3, 5.19615269f, -3, 1.73205078f, -3, 0, -3, -1.73205078f, -3,
                                     -5.19615269f}),
              1e-6, 1e-6);
}

TEST(Dft, Empty) {
  EXPECT_EQ(run_op(DftAttrs{.axis = 1}, {full<float>({0, 8, 1}, 1)})[0].dims, (Shape{0, 8, 2}));
  expect_equal(run_op(DftAttrs{.axis = 0, .length = 2}, {full<float>({0, 1}, 1)})[0], full<float>({2, 2}, 0));
}

TEST(Dft, Refuses) {
  const Tensor x = full<float>({1, 8, 1}, 1), z = full<float>({1, 8, 2}, 1);
  expect_refused(DftAttrs{.axis = 2}, {x});
  expect_refused(DftAttrs{.axis = -1}, {x});
  expect_refused(DftAttrs{.axis = 1, .length = -1}, {x});
  expect_refused(DftAttrs{.axis = 1, .length = std::numeric_limits<int64_t>::max()}, {x});
  expect_refused(DftAttrs{.axis = 1, .inverse = 2}, {x});
  expect_refused(DftAttrs{.axis = 1, .onesided = 1}, {z});
  expect_refused(DftAttrs{.axis = 1, .inverse = 1, .onesided = 1}, {x});
  expect_refused(DftAttrs{.axis = 0, .inverse = 1, .onesided = 1},
                 {full<float>({1, 2}, 1)});  // 2 (1 - 1) values
  expect_refused(DftAttrs{.axis = 1}, {full<float>({1, 8, 3}, 1)});
  expect_refused(DftAttrs{.axis = 1}, {full<float>({1, 0, 1}, 1)});
  expect_refused(DftAttrs{.axis = 0}, {full<float>({8}, 1)});
  expect_refused(DftAttrs{.axis = 1}, {full<int32_t>({1, 8, 1}, 1)});
}

}  // namespace
}  // namespace sinter::test
