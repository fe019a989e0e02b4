// Integer products of random shapes, numbers and result types.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"
#include "tests/ops/quantized_test.h"

namespace sinter::test {
namespace {

using quantized::Operands;

constexpr auto kFloatCode = static_cast<int64_t>(DType::kFloat32),
               kInt8Code = static_cast<int64_t>(DType::kInt8),
               kInt16Code = static_cast<int64_t>(DType::kInt16);

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t n) { return pick(1, n) == 1; }

 private:
  std::mt19937 random_;
};

// Result type, zero points and bounds.
template <class A>
void pick_numbers(A& a, Draw& r) {
  a.x_zero = r.chance(5) ? (r.chance(2) ? -128 : 127) : r.pick(-128, 127);
  a.to = r.chance(2) ? kInt8Code : r.chance(2) ? kFloatCode : kInt16Code;
  if (a.to == kInt16Code)
    a.y_zero = r.pick(-32768, 32767), a.q_min = -32768, a.q_max = r.pick(0, 32767);
  else
    a.y_zero = r.pick(-128, 127), a.q_min = r.pick(-128, -20), a.q_max = r.pick(-20, 127);
}

// Weights of -128, which the attributes state, zero points, one multiplier, multipliers beyond what the
// libraries take.
template <class A>
Operands pick_operands(A& a, const Shape& x, const Shape& w, int64_t columns, double sum, Draw& r) {
  Operands o = quantized::operands<int8_t>(x, w, columns, sum, static_cast<uint64_t>(r.pick(1, 1 << 30)));
  if (r.chance(3))
    for (size_t i = 0; i < o.weights.bytes.size(); i += static_cast<size_t>(r.pick(1, 3)))
      o.weights.bytes[i] = std::byte{0x80};
  a.wide_weights = std::count(o.weights.bytes.begin(), o.weights.bytes.end(), std::byte{0x80}) > 0;
  if (r.chance(3)) o.multipliers = full<float>({1}, 1.5f / static_cast<float>(sum));
  if (r.chance(8)) o.multipliers = full<float>({columns}, r.chance(2) ? 4000.0f : 0x1p-40f);
  if (r.chance(3)) o.weight_zeros = noise<int8_t>({r.chance(2) ? 1 : columns}, -128, 128, 77);
  return o;
}

TEST(IntegerProducts, Conv) {
  Draw r(5);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    QConvAttrs a{};
    a.group = r.chance(4) ? r.pick(2, 4) : 1;
    const int64_t kh = r.pick(1, 4), kw = r.pick(1, 4), ic = r.pick(1, 40), oc = a.group * r.pick(1, 70);
    a.strides = {r.pick(1, 2), r.pick(1, 2)}, a.dilations = {r.pick(1, 2), r.pick(1, 2)};
    a.pads = {r.pick(0, 5), r.pick(0, 2), r.pick(0, 2), r.pick(0, 5)};
    if (r.chance(4)) a.strides = {1, 1}, a.pads = {0, 0, 0, 0};
    pick_numbers(a, r);
    const bool point = r.chance(4);
    const Operands o =
        pick_operands(a, {r.pick(1, 2), r.pick(7, 12), r.pick(7, 12), ic * a.group},
                      {oc, point ? 1 : kh, point ? 1 : kw, ic}, oc, 3600 * std::sqrt(kh * kw * ic), r);
    check_taken_by("simd", a, o.tensors());
  }
}

// Inputs and weights whose size depends on the channel, at their extremes: instruction sets that sum two or
// four products in int16 may do so in some channels, up to the last number that fits, and not in others, and
// may subtract the minimum of each channel.
TEST(IntegerProducts, ConvOfChannelsOfAnySize) {
  Draw r(15);
  for (int round = 0; round < 80; ++round) {
    SCOPED_TRACE(round);
    QConvAttrs a{};
    const bool point = r.chance(2);
    const int64_t ic = r.chance(4) ? r.pick(1, 15) : r.pick(16, 70);
    const int64_t oc = r.chance(3) ? r.pick(64, 90) : r.pick(1, 40);
    const int64_t kh = point ? 1 : r.pick(1, 3), kw = point ? 1 : r.pick(1, 3), line = r.pick(1, 9);
    a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {kh - 1, kw - 1, 0, 0};
    pick_numbers(a, r);
    if (r.chance(2)) a.to = kInt8Code, a.y_zero = 3, a.q_min = -128, a.q_max = 127;
    Operands o = pick_operands(a, {1, r.pick(1, 5), line, ic}, {oc, kh, kw, ic}, oc,
                               3600 * std::sqrt(kh * kw * ic), r);
    const int64_t few[] = {0, 40, 63, 64, 65, 85, 86, 126, 127};
    const bool extreme = r.chance(2);
    for (int64_t c = 0; c < ic; ++c) {
      const int64_t most = r.chance(3) ? r.pick(0, 255) : 255, least = r.chance(2) ? r.pick(0, most) : 0;
      const int64_t weight = few[r.pick(0, 8)];
      for (size_t i = static_cast<size_t>(c); i < o.x.bytes.size(); i += static_cast<size_t>(ic)) {
        const int64_t x = least + static_cast<int64_t>(o.x.bytes[i]) % (most - least + 1);
        o.x.bytes[i] = static_cast<std::byte>((extreme ? most : x) - 128);
      }
      for (size_t i = static_cast<size_t>(c); i < o.weights.bytes.size(); i += static_cast<size_t>(ic)) {
        const int64_t w = static_cast<int8_t>(o.weights.bytes[i]);
        o.weights.bytes[i] = static_cast<std::byte>(extreme ? (w < 0 ? -weight : weight) : w * weight / 128);
      }
    }
    a.wide_weights = false;
    check_taken_by("simd", a, o.tensors());
  }
}

// Windows of one tap inside the input, which some instruction sets read in place.
TEST(IntegerProducts, ConvOfOneTap) {
  Draw r(12);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    QConvAttrs a{};
    a.group = r.chance(4) ? 2 : 1;
    const int64_t ic = r.chance(4) ? r.pick(1, 40) : 4 * r.pick(1, 30), oc = a.group * r.pick(1, 40);
    a.strides = {r.pick(1, 3), r.pick(1, 3)}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
    if (r.chance(2)) a.strides = {1, 1};
    pick_numbers(a, r);
    check_taken_by("simd", a,
                   pick_operands(a, {r.pick(1, 2), r.pick(1, 9), r.pick(1, 90), ic * a.group}, {oc, 1, 1, ic},
                                 oc, 3600 * std::sqrt(ic), r)
                       .tensors());
  }
}

// Channels by eight, whose rows some instruction sets multiply in pairs: lines of an odd number of results
// and of one, batches, groups, columns that do not fill a panel, several boxes.
TEST(IntegerProducts, ConvOfPairs) {
  Draw r(14);
  for (int round = 0; round < 90; ++round) {
    SCOPED_TRACE(round);
    QConvAttrs a{};
    a.group = r.chance(4) ? 2 : 1;
    const bool point = r.chance(3), boxes = r.chance(8);
    const int64_t ic = point && r.chance(2) ? r.pick(8, 40) : 8 * r.pick(1, 5), oc = a.group * r.pick(1, 36);
    const int64_t kh = point ? 1 : r.pick(1, 3), kw = point ? 1 : r.pick(1, 4);
    a.strides = {r.pick(1, 2), r.pick(1, 3)}, a.dilations = {r.pick(1, 2), r.pick(1, 2)};
    a.pads = {r.pick(0, 2), r.pick(0, 4), r.pick(0, 2), r.pick(0, 4)};
    if (point) a.strides = {1, 1}, a.pads = {0, 0, 0, 0};
    pick_numbers(a, r);
    a.to = kInt8Code, a.y_zero = r.pick(-128, 127), a.q_min = r.chance(2) ? -128 : -90;
    a.q_max = r.chance(2) ? 127 : 70;
    Operands o = pick_operands(a, {r.pick(1, 2), r.pick(5, 9), boxes ? 600 : r.pick(7, 24), ic * a.group},
                               {oc, kh, kw, ic}, oc, 3600 * std::sqrt(kh * kw * ic), r);
    o.weight_zeros = {};
    check_taken_by("simd", a, o.tensors());
  }
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 15})
    for (const int64_t depth : {4, 8, 9, 16, 20, 23, 32, 40, 60, 64}) {
      SCOPED_TRACE(rows * 100 + depth);
      QFullyConnectedAttrs a{.x_zero = 11, .y_zero = -5};
      check_taken_by("simd", a,
                     quantized::operands<int8_t>({rows, depth}, {19, depth}, 19, 9000, 3).tensors());
    }
}

// Up to 8 channels of output, and lines of more pixels than a vector has lanes.
TEST(IntegerProducts, ConvOfFewChannels) {
  Draw r(12);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    QConvAttrs a{};
    const int64_t kh = r.pick(1, 5), kw = r.pick(1, 9), ic = r.chance(3) ? r.pick(5, 40) : r.pick(1, 4),
                  oc = r.pick(1, 9);
    a.strides = {r.pick(1, 2), r.pick(1, 3)}, a.dilations = {r.pick(1, 2), r.chance(4) ? 2 : 1};
    a.pads = {r.pick(0, 5), r.pick(0, 9), r.pick(0, 2), r.pick(0, 9)};
    pick_numbers(a, r);
    const bool wide = r.chance(6);  // more than one box
    Operands o = pick_operands(a, {r.pick(1, 2), r.pick(9, 14), wide ? 700 : r.pick(17, 60), ic},
                               {oc, kh, kw, ic}, oc, 3600 * std::sqrt(kh * kw * ic), r);
    o.weight_zeros = {};
    check_taken_by("simd", a, o.tensors());
  }
  QConvAttrs a{};
  a.strides = {1, 2, 1}, a.dilations = {2, 1, 2}, a.pads = {1, 1, 1, 0, 1, 1};
  pick_numbers(a, r);
  for (const int64_t oc : {3, 8})
    check_taken_by("simd", a, pick_operands(a, {1, 6, 9, 25, 3}, {oc, 2, 3, 2, 3}, oc, 9000, r).tensors());
}

// Sizes that some instruction sets compute by Winograd's algorithm, and next to them.
TEST(IntegerProducts, ConvByTiles) {
  Draw r(11);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    QConvAttrs a{};
    const int64_t ic = r.pick(15, 50), oc = r.pick(15, 70);
    a.strides = {1, 1}, a.dilations = {1, 1};
    a.pads = {r.pick(0, 3), r.pick(0, 2), r.pick(0, 2), r.pick(0, 3)};
    pick_numbers(a, r);
    const Operands o = pick_operands(a, {r.pick(1, 3), r.pick(3, 13), r.pick(3, 13), ic}, {oc, 3, 3, ic}, oc,
                                     3600 * std::sqrt(9 * ic), r);
    check_taken_by("simd", a, o.tensors());
  }
}

// The largest sums, with channels at the bound of what fits four times into int32, and one more.
TEST(IntegerProducts, ConvByTilesOfLargestSums) {
  for (const bool zeros : {false, true})
    for (const int64_t beyond : {0, 1}) {
      const int64_t ic = INT32_MAX / (4 * 9 * 255 * (zeros ? 255 : 128)) + beyond, oc = 16;
      QConvAttrs a{};
      a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1}, a.x_zero = 127, a.wide_weights = 1;
      a.to = kFloatCode;
      Operands o = quantized::operands<int8_t>({1, 4, 4, ic}, {oc, 3, 3, ic}, oc, 1, 5);
      std::fill(o.x.bytes.begin(), o.x.bytes.end(), std::byte{0x80});
      std::fill(o.weights.bytes.begin(), o.weights.bytes.end(), std::byte{0x80});
      if (zeros) o.weight_zeros = full<int8_t>({oc}, 127);
      check_taken_by("simd", a, o.tensors());
    }
}

TEST(IntegerProducts, ConvOfOtherRanks) {
  Draw r(6);
  for (int round = 0; round < 10; ++round) {
    QConvAttrs a{};
    a.strides = {2}, a.dilations = {1}, a.pads = {3, 1};
    pick_numbers(a, r);
    check_taken_by("simd", a, pick_operands(a, {2, 30, 5}, {9, 4, 5}, 9, 9000, r).tensors());
    a.strides = {1, 2, 1}, a.dilations = {1, 1, 2}, a.pads = {1, 1, 1, 0, 1, 1};
    check_taken_by("simd", a, pick_operands(a, {1, 4, 6, 5, 3}, {33, 2, 3, 2, 3}, 33, 9000, r).tensors());
  }
}

TEST(IntegerProducts, DepthwiseConv) {
  Draw r(8);
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    QDepthwiseConvAttrs a{};
    const int64_t kh = r.pick(1, 5), kw = r.pick(1, 9), c = r.pick(1, 70);
    a.strides = {r.pick(1, 3), r.pick(1, 4)}, a.dilations = {r.pick(1, 2), 1};
    a.pads = {r.pick(0, 5), r.pick(0, 9), r.pick(0, 2), r.pick(0, 9)};
    pick_numbers(a, r);
    const bool wide = r.chance(6);  // more than one box
    const int64_t out = c * (r.chance(4) ? r.pick(2, 5) : 1);
    Operands o = pick_operands(a, {r.pick(1, 2), r.pick(9, 14), wide ? 900 : r.pick(9, 30), c}, {kh, kw, out},
                               out, 3600 * std::sqrt(kh * kw), r);
    o.weight_zeros = {};
    check_taken_by("simd", a, o.tensors());
  }
  for (int round = 0; round < 10; ++round) {
    QDepthwiseConvAttrs a{};
    a.strides = {2}, a.dilations = {1}, a.pads = {3, 1};
    pick_numbers(a, r);
    Operands o = pick_operands(a, {2, 30, 5}, {4, 5}, 5, 9000, r);
    o.weight_zeros = {};
    check_taken_by("simd", a, o.tensors());
    a.strides = {1, 2, 1}, a.dilations = {2, 1, 1}, a.pads = {1, 1, 1, 1, 1, 1};
    o = pick_operands(a, {1, 5, 6, 5, 33}, {2, 3, 2, 33}, 33, 9000, r);
    o.weight_zeros = {};
    check_taken_by("simd", a, o.tensors());
  }
}

// Windows, steps and types with loops of their own, on images of a few pixels and where rows end early.
TEST(IntegerProducts, UsualDepthwiseWindows) {
  Draw r(9);
  for (const int64_t kernel : {3, 5})
    for (const int64_t stride : {1, 2})
      for (const int64_t c : {1, 4, 7, 8, 12, 15, 16, 17, 24, 40})
        for (int round = 0; round < 5; ++round) {
          SCOPED_TRACE(testing::Message() << kernel << " step " << stride << " channels " << c);
          QDepthwiseConvAttrs a{};
          const int64_t pad = kernel / 2;
          a.strides = {stride, stride}, a.dilations = {1, 1};
          a.pads = {pad, r.pick(0, pad), pad, r.pick(0, pad)};
          pick_numbers(a, r);
          if (r.chance(2)) a.to = kInt8Code, a.y_zero = r.pick(-128, 127), a.q_min = -128, a.q_max = 127;
          Operands o = pick_operands(a, {r.pick(1, 2), r.pick(kernel, 7), r.pick(kernel, 21), c},
                                     {kernel, kernel, c}, c, 3600.0 * static_cast<double>(kernel), r);
          o.weight_zeros = {};
          check_taken_by("simd", a, o.tensors());
        }
}

// Multipliers of 1 and more, where scaled sums may be beyond int32.
TEST(IntegerProducts, DepthwiseMultipliers) {
  QDepthwiseConvAttrs a{};
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1}, a.x_zero = -128, a.y_zero = 3;
  Operands o = quantized::operands<int8_t>({1, 6, 9, 24}, {3, 3, 24}, 24, 3600, 5);
  for (const float m : {0.99999994f, 1.0f, -0.5f, -1.0f, 3e38f, -3e38f, INFINITY, std::nanf("")}) {
    SCOPED_TRACE(m);
    o.multipliers = full<float>({24}, 0.01f);
    const float few[] = {m, m};
    std::memcpy(&o.multipliers.bytes[4 * 5], few, sizeof(few));
    std::memcpy(&o.multipliers.bytes[4 * 22], few, sizeof(few));
    check_taken_by("simd", a, o.tensors());
  }
}

TEST(IntegerProducts, FullyConnected) {
  Draw r(7);
  for (const int64_t k : {1, 3, 8, 64, 65, 300, 5000})
    for (const int64_t n : {1, 7, 16, 17, 32, 100})
      for (const int64_t rows : {1, 2, 5, 9, 50}) {
        if (k == 5000 && rows > 9) continue;
        SCOPED_TRACE(testing::Message() << rows << " rows of " << k << " by " << n);
        QFullyConnectedAttrs a{};
        pick_numbers(a, r);
        const Operands o =
            pick_operands(a, {rows, k}, {n, k}, n, 4000 * std::sqrt(static_cast<double>(k)), r);
        check_taken_by("simd", a, o.tensors());
      }
}

TEST(IntegerProducts, MatMul) {
  Draw r(9);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    QMatMulAttrs a{};
    pick_numbers(a, r);
    const int64_t n = r.pick(1, 90), k = r.pick(1, 70), m = r.pick(1, 80);
    a.b_zero = r.chance(2) ? 0 : r.pick(-128, 127), a.transpose_b = r.pick(0, 1);
    a.multiplier = 1 / (3000 * std::sqrt(static_cast<double>(k)));
    const Tensor x = noise<int8_t>({2, 1, m, k}, -128, 128, 1);
    const Shape columns = a.transpose_b != 0 ? Shape{n, k} : Shape{k, n};
    check_taken_by("simd", a, {x, noise<int8_t>({3, columns[0], columns[1]}, -128, 128, 2)});
    check_taken_by("simd", a, {x, noise<int8_t>(columns, -128, 128, 2)});
  }
}

// Depths on one side of a multiple of 16 and on the other, operands across, batches that repeat, both types.
TEST(IntegerProducts, MatMulOfAnyLayout) {
  Draw r(21);
  for (const int64_t k : {1, 15, 16, 33, 80})
    for (int across = 0; across < 4; ++across) {
      SCOPED_TRACE(testing::Message() << "depth " << k << ", across " << across);
      const int64_t m = r.pick(1, 70), n = r.pick(1, 70);
      QMatMulAttrs a{.transpose_a = across & 1, .transpose_b = across >> 1};
      a.multiplier = 1 / (3000 * std::sqrt(static_cast<double>(k)));
      const Shape rows = a.transpose_a != 0 ? Shape{2, 1, k, m} : Shape{2, 1, m, k},
                  columns = a.transpose_b != 0 ? Shape{3, n, k} : Shape{3, k, n};
      const auto words = [](const Shape& dims, uint64_t seed) {
        return noise<int16_t>(dims, -32768, 32768, seed);
      };
      run_op(a, {noise<int8_t>(rows, -128, 128, 1), noise<int8_t>(columns, -128, 128, 2)});
      a.multiplier /= 256, a.to = kInt16Code, a.q_min = -32768, a.q_max = 32767;
      run_op(a, {words(rows, 3), words(columns, 4)});
      a.to = kInt8Code, a.q_min = -128, a.q_max = 127;
      a.multiplier = 1 / (3000 * std::sqrt(static_cast<double>(k))), a.x_zero = -128, a.b_zero = 127;
      run_op(a, {noise<int8_t>(rows, -128, 128, 5), noise<int8_t>(columns, -128, 128, 6)});
    }
}

// Enough rows for the largest tiles of a device, the last of which are not full.
TEST(IntegerProducts, ManyRows) {
  for (const int64_t channels : {3, 20, 48}) {
    SCOPED_TRACE(channels);
    QConvAttrs a{.x_zero = -9, .y_zero = 7};
    const bool point = channels != 3;
    const int64_t window = point ? 1 : 3, pad = window / 2;
    a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {pad, pad, pad, pad}, a.group = 1;
    Operands o = quantized::operands<int8_t>({1, 63, 67, channels}, {35, window, window, channels}, 35,
                                             3600 * std::sqrt(window * window * channels), 5);
    run_op(a, o.tensors(), {.strided = point});
    o.weight_zeros = noise<int8_t>({35}, -128, 128, 8);
    run_op(a, o.tensors(), {.strided = false});
  }
}

// Pixels that fill vectors, next to each other and apart; some panels have a multiplier of 1 and more.
TEST(IntegerProducts, PixelsOfWholeVectors) {
  for (const int64_t columns : {4, 8, 16, 32, 64})
    for (const int64_t groups : {1, 2})
      for (const float most : {0.01f, 1.0f, 256.0f}) {
        SCOPED_TRACE(columns * groups + most);
        QConvAttrs a{.x_zero = 3, .y_zero = -5, .q_min = -101, .q_max = 99};
        a.group = groups, a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
        const int64_t oc = columns * groups;
        Operands o = quantized::operands<int8_t>({1, 3, 5, 7 * groups}, {oc, 1, 1, 7}, oc, 3600 * 2.6, 3);
        auto m = o.multipliers.values<float>();
        m[m.size() / 2] = most;
        o.multipliers = tensor<float>({oc}, m);
        check_taken_by("simd", a, o.tensors());
      }
}

// Sums that leave int32, multipliers that are NaN: as the reference kernels have it.
TEST(IntegerProducts, NumbersOfFilesThatAreWrong) {
  for (const int64_t to : {kInt8Code, kInt16Code, kFloatCode}) {
    QFullyConnectedAttrs a{.x_zero = -128, .to = to};
    Operands o = quantized::operands<int8_t>({3, 64}, {40, 64}, 40, 1000, 1);
    o.bias = noise<int32_t>({40}, -2147483647.0, 2147483647.0, 3);
    check_taken_by("simd", a, o.tensors());
    if (to == kFloatCode) continue;
    auto m = o.multipliers.values<float>();
    m[1] = std::nanf(""), m[2] = HUGE_VALF, m[3] = -HUGE_VALF, m[4] = -1, m[5] = 0, m[6] = -0.0f,
    m[7] = 3e38f;
    o.multipliers = tensor<float>({40}, m);
    check_taken_by("simd", a, o.tensors());
  }
}

// Every rounding case: products of all bytes by the multipliers of 1/2, 1/3, ... with both signs.
TEST(IntegerProducts, RoundsHalvesToEven) {
  std::vector<int8_t> x, w;
  for (int i = -127; i <= 127; ++i) x.push_back(static_cast<int8_t>(i));
  for (int i = 1; i <= 127; ++i) w.push_back(static_cast<int8_t>(i));
  for (const float m : {0.5f, 0.25f, 0.125f, 1.0f / 3, 0.0078125f, 3e-5f, 255.0f})
    check_taken_by("simd", QFullyConnectedAttrs{},
                   {tensor<int8_t>({255, 1}, x), tensor<int8_t>({127, 1}, w), full<int32_t>({127}, 0),
                    full<float>({127}, m)});
}

// Sums and biases of up to 2^24 each, and a little more: from there on float32 rounds them. With a row of
// zeros the bias alone is multiplied, to halves in two of three channels.
TEST(IntegerProducts, SumsThatFloat32JustHolds) {
  constexpr int64_t kOutputs = 33;
  for (const int64_t depth : {2, 512, 514, 515, 1024, 1025})
    for (const int64_t zero : {-128, 0}) {
      std::vector<int8_t> x = noise<int8_t>({4, depth}, -128, 128, 1).values<int8_t>(),
                          w = noise<int8_t>({kOutputs, depth}, -128, 128, 2).values<int8_t>();
      for (int64_t i = 0; i < depth; ++i) {
        x[i] = static_cast<int8_t>(zero), x[depth + i] = 127, x[2 * depth + i] = -128;
        w[i] = -128, w[depth + i] = 127;
      }
      std::vector<int32_t> bias;
      std::vector<float> multipliers;
      for (int32_t o = 0; o < kOutputs; ++o) {
        bias.push_back(o < 2 ? (o == 0 ? -1 : 1) * (1 << 24)
                             : (o - 17) * (1 << 17) + (o % 3 == 0 ? o % 2 : 0));
        multipliers.push_back(o % 5 == 0 ? 3e-6f : 0x1p-18f);
      }
      check_taken_by("simd", QFullyConnectedAttrs{.x_zero = zero, .y_zero = 3, .wide_weights = 1},
                     {tensor<int8_t>({4, depth}, x), tensor<int8_t>({kOutputs, depth}, w),
                      tensor<int32_t>({kOutputs}, bias), tensor<float>({kOutputs}, multipliers)});
    }
}

// Products of 2^24 + 1 and a bias of 2^17 - 2^24 are a little more than half a step; rounded before they are
// added, just half.
TEST(IntegerProducts, SumsThatFloat32DoesNotHold) {
  constexpr int64_t kDepth = 520;
  std::vector<int8_t> x(2 * kDepth, 127), w(2 * kDepth, 127);
  for (int64_t row = 1; row <= 2; ++row) {
    x[row * kDepth - 1] = -126;
    w[row * kDepth - 2] = 7, w[row * kDepth - 1] = 1;
  }
  check_taken_by("simd", QFullyConnectedAttrs{.x_zero = -128},
                 {tensor<int8_t>({2, kDepth}, x), tensor<int8_t>({2, kDepth}, w),
                  full<int32_t>({2}, (1 << 17) - (1 << 24)), full<float>({2}, 0x1p-18f)});
}

}  // namespace
}  // namespace sinter::test
