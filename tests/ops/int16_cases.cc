// The int16 rows of the integer operations against their formulas in docs/numerics.md.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/core/integer_limits.h"
#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr int64_t kInt16 = static_cast<int64_t>(DType::kInt16), kInt8 = static_cast<int64_t>(DType::kInt8);

Tensor words(const Shape& dims, uint64_t seed) {
  Tensor t = noise<int16_t>(dims, -32768, 32767.9, seed);
  if (t.bytes.size() >= 4) {  // the ends too
    const int16_t ends[] = {-32768, 32767};
    std::memcpy(t.bytes.data(), ends, sizeof ends);
  }
  return t;
}

template <class A>
int16_t clamped_word(const A& a, float v) {
  return static_cast<int16_t>(std::clamp(std::nearbyint(static_cast<double>(v)), static_cast<double>(a.q_min),
                                         static_cast<double>(a.q_max)));
}

TEST(Int16, AddAndMul) {
  const Tensor x = words({5000}, 1), y = words({5000}, 2);
  const auto u = x.values<int16_t>(), v = y.values<int16_t>();
  for (const QAddAttrs& a :
       {QAddAttrs{0, 0, 1, 1, 0, 0, -32768, 32767}, QAddAttrs{0, 0, 1500000, -900001, 20, 0, -32768, 32767},
        QAddAttrs{0, 0, 1 << 21, 3, 30, 0, -5, 90}, QAddAttrs{0, 0, 1, 1, 1, 0, -32768, 32767}}) {
    const auto got = run_op(a, {x, y})[0].values<int16_t>();
    ASSERT_EQ(got.size(), u.size());
    const float unit = std::ldexp(1.0f, -static_cast<int>(a.shift));
    for (size_t i = 0; i < u.size(); ++i) {
      const float left = static_cast<float>(u[i]) * (static_cast<float>(a.a_multiplier) * unit),
                  right = static_cast<float>(v[i]) * (static_cast<float>(a.b_multiplier) * unit);
      ASSERT_EQ(got[i], clamped_word(a, left + right)) << u[i] << " and " << v[i];
    }
  }
  for (const QMulAttrs& a :
       {QMulAttrs{0, 0, 0x1p-15, 0, -32768, 32767}, QMulAttrs{0, 0, 0.0000731, 0, -9, 12000}}) {
    const auto got = run_op(a, {x, y})[0].values<int16_t>();
    for (size_t i = 0; i < u.size(); ++i)
      ASSERT_EQ(got[i], clamped_word(a, static_cast<float>(u[i] * v[i]) * static_cast<float>(a.multiplier)));
  }
  for (const QAddAttrs& a : {QAddAttrs{1, 0, 1, 1, 0, 0, -5, 5}, QAddAttrs{0, -1, 1, 1, 0, 0, -5, 5},
                             QAddAttrs{0, 0, 1, 1, 0, 1, -5, 5}, QAddAttrs{0, 0, 1, 1, 0, 0, -5, 32768}})
    expect_refused(a, {x, y});
  expect_refused(QAddAttrs{0, 0, 1, 1, 0}, {x, full<int8_t>({5000}, 1)});
  expect_refused(QMulAttrs{0, 1, 1, 0, -5, 5}, {x, y});
}

TEST(Int16, PRelu) {
  const Tensor x = words({700, 7}, 3), slopes = noise<float>({7}, -2, 2, 4);
  const auto u = x.values<int16_t>();
  const auto s = slopes.values<float>();
  const QPReluAttrs a{0, 0, 0.77, -30000, 32767};
  const auto got = run_op(a, {x, slopes})[0].values<int16_t>();
  for (size_t i = 0; i < u.size(); ++i)
    ASSERT_EQ(got[i], clamped_word(a, static_cast<float>(u[i]) * (u[i] < 0 ? s[i % 7] : 0.77f)));
  expect_refused(QPReluAttrs{1, 0, 1, -5, 5}, {x, slopes});
}

TEST(Int16, Means) {
  const Tensor x = words({3, 4, 5, 6}, 5);
  const auto u = x.values<int16_t>();
  QMeanAttrs a{{1, 2}, 1, 0, 0, 1.3, -32768, 32767};
  const auto got = run_op(a, {x})[0].values<int16_t>();
  ASSERT_EQ(got.size(), 18u);
  QAvgPoolAttrs pool{};
  pool.kernel = {4, 5}, pool.multiplier = 1.3, pool.q_min = -32768, pool.q_max = 32767;
  const auto pooled = run_op(pool, {x})[0].values<int16_t>();
  for (size_t n = 0; n < 3; ++n)
    for (size_t c = 0; c < 6; ++c) {
      int32_t sum = 0;
      for (size_t i = 0; i < 20; ++i) sum += u[(n * 20 + i) * 6 + c];
      const int16_t want = clamped_word(a, static_cast<float>(sum) * static_cast<float>(1.3 / 20));
      EXPECT_EQ(got[n * 6 + c], want);
      EXPECT_EQ(pooled[n * 6 + c], want);
    }
  a.axes = {0};
  EXPECT_EQ(run_op(QMeanAttrs{{0}, 0, 0, 0, 1, -32768, 32767}, {full<int16_t>({1 << 16}, -32768)})[0]
                .values<int16_t>(),
            std::vector<int16_t>{-32768});
  expect_refused(QMeanAttrs{{0}, 0, 0, 0, 1, -32768, 32767}, {full<int16_t>({(1 << 16) + 1}, 1)});
  pool.x_zero = 1;
  expect_refused(pool, {x});
}

TEST(Int16, Resize) {
  const Tensor x = words({2, 5, 7, 3}, 6);
  const auto u = x.values<int16_t>();
  const Tensor rows = tensor<int32_t>({3, 2}, {0, 1000, 2, 2048, 4, 7}),
               columns = tensor<int32_t>({4, 2}, {0, 0, 3, 1024, 5, 2047, 6, 1});
  const auto got = run_op(QResizeAttrs{}, {x, rows, columns})[0].values<int16_t>();
  ASSERT_EQ(got.size(), 72u);
  size_t at = 0;
  for (size_t n = 0; n < 2; ++n)
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 4; ++j)
        for (size_t c = 0; c < 3; ++c, ++at) {
          const auto item = [&](int row, int column) {
            return static_cast<int32_t>(u[((n * 5 + static_cast<size_t>(std::min(row, 4))) * 7 +
                                           static_cast<size_t>(std::min(column, 6))) *
                                              3 +
                                          c]);
          };
          const int32_t r = rows.values<int32_t>()[2 * i], v = rows.values<int32_t>()[2 * i + 1],
                        k = columns.values<int32_t>()[2 * j], w = columns.values<int32_t>()[2 * j + 1];
          const int32_t left = (2048 - v) * item(r, k) + v * item(r + 1, k),
                        right = (2048 - v) * item(r, k + 1) + v * item(r + 1, k + 1);
          const float sum = static_cast<float>(left) * static_cast<float>(2048 - w) +
                            static_cast<float>(right) * static_cast<float>(w);
          ASSERT_EQ(got[at], std::lrint(std::clamp(sum * 0x1p-22f, -32768.0f, 32767.0f)));
        }
}

TEST(Int16, MatMul) {
  const Tensor a = words({2, 4, 300}, 7), b = words({2, 5, 300}, 8);
  const auto u = a.values<int16_t>(), v = b.values<int16_t>();
  QMatMulAttrs m{};
  m.transpose_b = 1, m.multiplier = 2e-7, m.q_min = -32768, m.q_max = 32767, m.to = kInt16;
  const auto got = run_op(m, {a, b})[0].values<int16_t>();
  m.to = static_cast<int64_t>(DType::kFloat32);
  const auto wide = run_op(m, {a, b})[0].values<float>();
  ASSERT_EQ(got.size(), 40u);
  for (size_t n = 0; n < 2; ++n)
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < 5; ++j) {
        int64_t sum = 0;
        for (size_t k = 0; k < 300; ++k)
          sum += static_cast<int64_t>(u[(n * 4 + i) * 300 + k]) * v[(n * 5 + j) * 300 + k];
        const float want = static_cast<float>(sum) * 2e-7f;
        EXPECT_EQ(wide[(n * 4 + i) * 5 + j], want);
        EXPECT_EQ(got[(n * 4 + i) * 5 + j], clamped_word(m, want));
      }
  m.x_zero = 3;
  expect_refused(m, {a, b});
  m.x_zero = 0;
  expect_refused(m, {a, full<int8_t>({2, 5, 300}, 1)});
}

TEST(Int16, Requantize) {
  const Tensor wide = iota<int16_t>({65536}, -32768), narrow = iota<int8_t>({256}, -128);
  const QRequantizeAttrs down{0, 1.0 / 256, 3, -100, 127, kInt8}, up{-5, 200.5, 0, -32768, 30000, kInt16},
      same{0, 0.731, 0, -32768, 32767, kInt16}, bytes{7, 1.5, -9, -128, 127, kInt8};
  const auto a = run_op(down, {wide})[0].values<int8_t>(), d = run_op(bytes, {narrow})[0].values<int8_t>();
  const auto b = run_op(up, {narrow})[0].values<int16_t>(), c = run_op(same, {wide})[0].values<int16_t>();
  for (int i = 0; i < 65536; ++i) {
    const auto x = static_cast<float>(i - 32768);
    ASSERT_EQ(a[static_cast<size_t>(i)], std::clamp(std::lrint(x / 256) + 3, -100L, 127L));
    ASSERT_EQ(c[static_cast<size_t>(i)], clamped_word(same, x * 0.731f));
  }
  for (int i = 0; i < 256; ++i) {
    const auto x = static_cast<float>(i - 128);
    ASSERT_EQ(b[static_cast<size_t>(i)], clamped_word(up, (x + 5) * 200.5f));
    ASSERT_EQ(d[static_cast<size_t>(i)], std::clamp(std::lrint((x - 7) * 1.5f) - 9, -128L, 127L));
  }
  expect_refused(QRequantizeAttrs{1, 1, 0, -5, 5, kInt8}, {wide});
  expect_refused(QRequantizeAttrs{0, 1, 1, -5, 5, kInt16}, {wide});
  expect_refused(QRequantizeAttrs{0, 1, 0, -129, 5, kInt8}, {wide});
  expect_refused(QRequantizeAttrs{0, -1, 0, -5, 5, kInt16}, {wide});
  expect_refused(QRequantizeAttrs{0, 1, 0, -5, 5, static_cast<int64_t>(DType::kInt32)}, {wide});
  expect_refused(QRequantizeAttrs{0, 1, 0, -5, 5, kInt8}, {full<int32_t>({2}, 1)});
}

TEST(Int16, Tables) {
  const Tensor x = iota<int16_t>({65536}, -32768);
  for (const int k : {8, 9, 12}) {
    const int n = 1 << k;
    // x^2 / 2^16 and back: rounded entries, halves, and one beyond what counts.
    std::vector<int32_t> entries;
    for (int i = 0; i <= n; ++i)
      entries.push_back(
          static_cast<int32_t>(std::lrint(std::pow(65536.0 / n * i - 32768, 2) / 65536 * n / 2)));
    entries[3] = INT32_MIN, entries[static_cast<size_t>(n)] = INT32_MAX;
    const QTableAttrs a{-20000, 16000};
    const auto got = run_op(a, {x, tensor<int32_t>({n + 1}, entries)})[0].values<int16_t>();
    const int64_t most = max_table_entry(k), width = 65536 / n;
    for (int64_t i = 0; i < 65536; ++i) {
      const auto at = static_cast<size_t>(i / width);
      const int64_t left = std::clamp<int64_t>(entries[at], -most, most),
                    right = std::clamp<int64_t>(entries[at + 1], -most, most), f = i % width;
      const double exact = static_cast<double>(left * (width - f) + right * f) / 32768;
      ASSERT_EQ(got[static_cast<size_t>(i)], std::clamp(std::nearbyint(exact), -20000.0, 16000.0)) << i;
    }
  }
  for (const int64_t n : {int64_t{256}, int64_t{129}, int64_t{8193}, int64_t{300}})
    expect_refused(QTableAttrs{}, {x, full<int32_t>({n}, 0)});
  expect_refused(QTableAttrs{}, {full<int8_t>({4}, 0), full<int32_t>({257}, 0)});
  expect_refused(QTableAttrs{}, {x, full<float>({257}, 0)});
  expect_refused(QTableAttrs{3, 2}, {x, full<int32_t>({257}, 0)});
}

}  // namespace
}  // namespace sinter::test
