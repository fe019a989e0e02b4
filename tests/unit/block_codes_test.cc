// Weights as integers with scales: never worse than the plain scale, close to the best that there is.
#include "converter/quantize/weights/block_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "converter/quantize/weights/weight_coding.h"

namespace sinter::convert {
namespace {

std::vector<float> normals(size_t n, float mean = 0) {
  std::mt19937 random(7);
  std::vector<float> w;
  for (size_t i = 0; i < n; ++i) {
    float sum = 0;  // the library's distributions differ between platforms
    for (int k = 0; k < 12; ++k) sum += static_cast<float>(random() >> 8) * 0x1p-24f;
    w.push_back(sum - 6 + mean);
  }
  return w;
}

std::vector<int8_t> all_of(const BlockCodes& c, std::span<const float> w) {
  return c.integers(w, 0, c.shape.rows);
}

double decoded(const BlockCodes& c, const std::vector<int8_t>& q, size_t i) {
  const BlockShape& shape = c.shape;
  const auto columns = static_cast<size_t>(shape.columns), row = i / columns,
             at = row * static_cast<size_t>(shape.blocks()) + i % columns / static_cast<size_t>(shape.block);
  return (q[i] - (c.zeros.empty() ? 0 : c.zeros[at])) * static_cast<double>(c.scales[at]);
}

// The error of a scale without a zero point.
double error_of(std::span<const float> w, double scale, int low, int high) {
  double sum = 0;
  for (const double v : w) {
    const double q =
        std::clamp(std::nearbyint(v / scale), static_cast<double>(low), static_cast<double>(high));
    sum += (v - q * scale) * (v - q * scale);
  }
  return sum;
}

TEST(BlockCodes, NoiseIsThatOfTheIntegers) {
  const BlockShape shape{6, 70, 32};  // the last block of a row has 6
  const std::vector<float> w = normals(420, 0.3f);
  for (const auto& [bits, zeros] : {std::pair(4, false), std::pair(4, true), std::pair(8, false)}) {
    const BlockCodes c = code_blocks(w, shape, bits, zeros);
    const std::vector<int8_t> q = all_of(c, w);
    ASSERT_EQ(q.size(), w.size());
    EXPECT_EQ(c.integers(w, 2, 3), std::vector<int8_t>(q.begin() + 2 * 70, q.begin() + 5 * 70));
    ASSERT_EQ(c.scales.size(), 18u);
    ASSERT_EQ(c.zeros.size(), zeros ? 18u : 0u);
    double noise = 0, signal = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const double d = static_cast<double>(w[i]) - decoded(c, q, i);
      noise += d * d, signal += static_cast<double>(w[i]) * static_cast<double>(w[i]);
      EXPECT_GE(q[i], bits == 8 ? -127 : zeros ? 0 : -8);
      EXPECT_LE(q[i], bits == 8 ? 127 : zeros ? 15 : 7);
    }
    EXPECT_NEAR(c.noise, noise, 1e-9 * noise);
    EXPECT_NEAR(c.db(), 10 * std::log10(signal / noise), 1e-6);
  }
}

TEST(BlockCodes, NearTheBestScale) {
  const std::vector<float> w = normals(32 * 40);
  double found = 0, best = 0, plain = 0;
  for (size_t b = 0; b < 40; ++b) {
    const std::span<const float> block = std::span(w).subspan(32 * b, 32);
    found += code_blocks(block, {1, 32, 32}, 4, false).noise;
    double largest = 0, least = HUGE_VAL;
    for (const float v : block) largest = std::max(largest, std::fabs(static_cast<double>(v)));
    for (int i = 1; i <= 2000; ++i)
      for (const double sign : {-1.0, 1.0})
        least = std::min(least, error_of(block, sign * largest / 7 * i / 1000, -8, 7));
    best += least, plain += error_of(block, largest / 7, -7, 7);
  }
  EXPECT_LT(found, 1.10 * best);
  EXPECT_LT(found, 0.80 * plain);
}

TEST(BlockCodes, ZeroPointsServeWeightsOffZero) {
  const std::vector<float> w = normals(320, 4);
  const double without = code_blocks(w, {10, 32, 32}, 4, false).db(),
               with = code_blocks(w, {10, 32, 32}, 4, true).db();
  EXPECT_GT(with, without - 0.5);
  const std::vector<float> positive = normals(320, 2);
  EXPECT_GT(code_blocks(positive, {10, 32, 32}, 4, true).db(),
            code_blocks(positive, {10, 32, 32}, 4, false).db() + 2);
}

TEST(BlockCodes, ZerosAndTheSmallest) {
  std::vector<float> w(64, 0.0f);
  for (size_t i = 32; i < 64; ++i) w[i] = 1e-41f;  // no scale that is a normal number represents them
  for (const int bits : {4, 8}) {
    const BlockCodes c = code_blocks(w, {1, 64, 32}, bits, false);
    EXPECT_EQ(all_of(c, w), std::vector<int8_t>(w.size()));
    for (const float s : c.scales) EXPECT_EQ(s, 1);
  }
  const BlockCodes zeros = code_blocks(std::vector<float>(8, 0.0f), {1, 8, 8}, 4, true);
  EXPECT_EQ(zeros.noise, 0);
  EXPECT_EQ(zeros.db(), 999);
}

TEST(BlockCodes, RowsOf8BitsAreNeverWorseThanThePlainScale) {
  const std::vector<float> w = normals(200 * 20);
  for (size_t row = 0; row < 20; ++row) {
    const std::span<const float> items = std::span(w).subspan(200 * row, 200);
    double largest = 0;
    for (const float v : items) largest = std::max(largest, std::fabs(static_cast<double>(v)));
    EXPECT_LE(code_blocks(items, {1, 200, 200}, 8, false).noise,
              1.0001 * error_of(items, largest / 127, -127, 127));
  }
}

// Blocks are searched several at a time; each comes out as it does alone, the short one at a row's end too.
TEST(BlockCodes, BlocksDoNotSeeEachOther) {
  const int64_t rows = 5, columns = 7 * 32 + 20;
  std::vector<float> w = normals(static_cast<size_t>(rows * columns), 0.3f);
  std::fill(w.begin() + 64, w.begin() + 96, 0.0f);
  std::fill(w.begin() + 96, w.begin() + 128, 1e-40f);
  for (const bool zeros : {false, true}) {
    const BlockShape whole{rows, columns, 32};
    const BlockCodes all = code_blocks(w, whole, 4, zeros);
    const std::vector<int8_t> integers = all_of(all, w);
    size_t at = 0;
    for (int64_t n = 0; n < rows; ++n)
      for (int64_t k = 0; k < columns; k += 32, ++at) {
        const int64_t length = std::min<int64_t>(32, columns - k);
        const auto first = static_cast<size_t>(n * columns + k);
        const std::span<const float> block = std::span(w).subspan(first, static_cast<size_t>(length));
        const BlockCodes one = code_blocks(block, {1, length, length}, 4, zeros);
        EXPECT_EQ(one.scales[0], all.scales[at]);
        EXPECT_EQ(zeros ? one.zeros[0] : 0, zeros ? all.zeros[at] : 0);
        const std::vector<int8_t> q = all_of(one, block);
        EXPECT_TRUE(std::equal(q.begin(), q.end(), integers.begin() + static_cast<std::ptrdiff_t>(first)));
      }
  }
}

// A product with the weights of a table gets what it would get alone; other weights of that shape, too.
TEST(WeightCoder, KeepsTheCodesOfTables) {
  const BlockShape shape{16, 64, 64};
  const std::vector<float> table = normals(16 * 64);
  std::vector<float> other = table;
  other[5] = 9;
  for (const int bits : {4, 8}) {
    WeightCoder coder(bits, 32);
    const Coded kept = coder.code(table, shape, true, {.blocks = true, .kept = true});
    for (const auto& weights : {table, other}) {
      const Coded coded = coder.code_in(bits, weights, shape, {.blocks = true, .zeros = true}),
                  alone =
                      WeightCoder(bits, 32).code_in(bits, weights, shape, {.blocks = true, .zeros = true});
      EXPECT_EQ(coded.scheme, alone.scheme);
      EXPECT_EQ(coded.codes.scales, alone.codes.scales);
      EXPECT_EQ(coded.codes.zeros, alone.codes.zeros);
      EXPECT_EQ(coded.codes.noise, alone.codes.noise);
      EXPECT_EQ(coded.codes.scales == kept.codes.scales, weights == table);
    }
  }
}

}  // namespace
}  // namespace sinter::convert
