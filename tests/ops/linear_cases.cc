// Products, convolutions, pools and attention of many shapes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/bit_rows.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"
#include "tests/ops/random_calls.h"

namespace sinter::test {
namespace {

TEST(MatMul, Sizes) {
  const int64_t sizes[][3] = {{1, 1, 1},      {3, 5, 7},   {6, 16, 32},  {1, 700, 90},
                              {5, 33, 64},    {7, 13, 65}, {50, 64, 50}, {100, 7, 33},
                              {13, 2500, 40}, {2, 3, 1},   {8, 40, 31},  {9, 40, 129}};
  for (const auto& [m, k, n] : sizes) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    const Tensor a = noise<float>({m, k}, -1, 1, 1), b = noise<float>({k, n}, -1, 1, 2);
    const Tensor at = noise<float>({k, m}, -1, 1, 1), bt = noise<float>({n, k}, -1, 1, 2);
    check_taken_by("simd", MatMulAttrs{}, {a, b});
    check_taken_by("simd", MatMulAttrs{.transpose_a = 1}, {at, b});
    check_taken_by("simd", MatMulAttrs{.transpose_b = 1}, {a, bt});
    check_taken_by("simd", MatMulAttrs{.transpose_a = 1, .transpose_b = 1}, {at, bt});
    check_taken_by("simd", FullyConnectedAttrs{}, {a, bt});
    check_taken_by("simd", FullyConnectedAttrs{.act_min = -0.5, .act_max = 0.25},
                   {a, bt, noise<float>({n}, -1, 1, 3)});
  }
}

TEST(MatMul, Batches) {
  const std::pair<Shape, Shape> shapes[] = {
      {{2, 5, 8}, {2, 8, 9}}, {{5, 8}, {3, 8, 9}},    {{4, 1, 5, 8}, {3, 8, 40}},    {{7, 12, 8}, {1, 8, 9}},
      {{2, 0, 8}, {2, 8, 9}}, {{2, 5, 0}, {2, 0, 9}}, {{2, 3, 9, 4}, {2, 1, 4, 40}}, {{0, 5, 8}, {1, 8, 9}}};
  for (const auto& [a, b] : shapes) {
    SCOPED_TRACE(testing::PrintToString(a) + " by " + testing::PrintToString(b));
    check_taken_by("simd", MatMulAttrs{}, {noise<float>(a, -1, 1, 1), noise<float>(b, -1, 1, 2)});
    Shape t = b;
    std::swap(t[t.size() - 1], t[t.size() - 2]);
    check_taken_by("simd", MatMulAttrs{.transpose_b = 1},
                   {noise<float>(a, -1, 1, 1), noise<float>(t, -1, 1, 2)});
  }
  check_taken_by("simd", FullyConnectedAttrs{},
                 {full<float>({7, 0}, 1), full<float>({3, 0}, 1), tensor<float>({3}, {1, 2, 3})});
  check_taken_by("simd", FullyConnectedAttrs{},
                 {full<float>({2, 0}, 1), full<float>({3, 0}, 1), tensor<float>({3}, {1, 2, 3})});
}

// Weights of `bits` as LowBitFullyConnected takes them: an element type, or rows of bytes.
struct LowBitWidth {
  int64_t bits;  // 0: of the type
  DType type;
  Tensor weights(int64_t n, int64_t k) const {
    const Shape dims{n, bits != 0 ? bit_row_bytes(static_cast<int>(bits), k) : k};
    return {type, dims, noise<uint8_t>({(n * dims[1] * bit_width(type) + 7) / 8}, 0, 256, 4).bytes};
  }
  Tensor zeros(int64_t n, int64_t blocks) const {
    // Rows of bytes have a byte for each zero point, which has a value of as many bits as a weight.
    const int64_t count = bits != 0 ? n * blocks : (n * blocks * bit_width(type) + 7) / 8;
    return {type, {n, blocks}, noise<uint8_t>({count}, 0, bits != 0 ? 1 << bits : 256, 5).bytes};
  }
};

const RunOptions kLowBitTaken{.taken_by = {"simd", "cuda-emulated"}};

TEST(LowBit, Sizes) {
  // Rows, columns, depth, block: blocks shorter and longer than vectors, rows that end within one. Of many
  // rows: several pieces of panels, long blocks in parts, and more rows than are multiplied at once. The last
  // ones: several of CUDA's tiles, with blocks of a step and of several, and depths that end within a step.
  const int64_t sizes[][4] = {
      {1, 1, 2, 2},       {1, 9, 64, 32},    {2, 33, 96, 16},      {3, 70, 640, 128},   {4, 5, 90, 32},
      {1, 7, 50, 1000},   {5, 7, 34, 16},    {6, 65, 96, 32},      {50, 130, 600, 24},  {7, 3, 1030, 4},
      {1, 0, 32, 32},     {2, 3, 2050, 64},  {0, 3, 32, 32},       {97, 200, 40, 64},   {1, 40, 62, 34},
      {1, 7, 56, 1000},   {5, 7, 40, 16},    {1, 6, 4096, 16},     {3, 6, 1032, 512},   {1, 13, 4160, 32},
      {17, 70, 4160, 32}, {64, 33, 256, 64}, {9, 40, 2304, 2048},  {5, 35, 3000, 1500}, {19, 5, 4400, 2200},
      {8, 17, 88, 8},     {600, 3, 64, 16},  {12, 65, 1056, 1056}, {17, 70, 160, 32},   {9, 40, 288, 256},
      {66, 130, 24, 32},  {10, 19, 72, 24}};
  const LowBitWidth widths[] = {{0, DType::kUint4}, {0, DType::kInt4}, {0, DType::kUint8}, {0, DType::kInt8},
                                {0, DType::kUint2}, {0, DType::kInt2}, {3, DType::kUint8}, {5, DType::kUint8},
                                {6, DType::kUint8}, {7, DType::kUint8}};
  uint64_t next = 0;
  for (const auto& [m, n, k, block] : sizes) {
    const int64_t blocks = (k + block - 1) / block;
    const Tensor x = noise<float>({m, k}, -1, 1, 1), s = noise<float>({n, blocks}, 0.05, 0.1, 2),
                 bias = noise<float>({n}, -1, 1, 3);
    const bool large = m * n * k > 1 << 18;
    RunOptions taken = kLowBitTaken;
    taken.emulated = !large;
    for (const LowBitWidth& width : widths) {
      // Each large size of some widths, and each width of some large sizes.
      if (large && next++ % kSeedStep != 0) continue;
      for (const int64_t activations : {0, 8}) {
        const bool whole_bytes = width.bits == 0 && bit_width(width.type) >= 4;
        if (!whole_bytes && (k % 8 != 0 || (block < k && block % 8 != 0))) continue;
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " by " << block << " "
                                        << dtype_name(width.type) << " " << width.bits << " " << activations);
        LowBitFullyConnectedAttrs a{.block_size = block, .bits = width.bits, .activation_bits = activations};
        const Tensor w = width.weights(n, k);
        run_op(a, {x, w, s}, taken);
        run_op(a, {x, w, s, width.zeros(n, blocks), bias}, taken);
        if (width.type != DType::kUint4 && width.type != DType::kUint8) continue;
        a.act_min = -0.5, a.act_max = 0.25;
        run_op(a, {x, w, s, noise<float>({n, blocks}, 0, 9, 6)}, taken);
      }
    }
  }
}

// All products of a sum have the largest magnitude, of either sign: sums of integers must hold them. CUDA's
// are floats.
TEST(LowBit, LargestSums) {
  const LowBitWidth widths[] = {{0, DType::kUint2}, {3, DType::kUint8}, {0, DType::kUint4},
                                {5, DType::kUint8}, {6, DType::kUint8}, {7, DType::kUint8},
                                {0, DType::kUint8}, {0, DType::kInt8}};
  constexpr int64_t kColumns = 20, kDepth = 1024;
  RunOptions taken = kLowBitTaken;
  for (const LowBitWidth& width : widths)
    for (const int64_t block : {32, 1024})
      for (const int byte : {0, 127, 128, 255})
        for (const float sign : {-1.0f, 1.0f})
          for (const int64_t rows : {1, 13})
            for (const int64_t activations : {0, 8}) {
              SCOPED_TRACE(testing::Message() << dtype_name(width.type) << " " << width.bits << " by "
                                              << block << ", bytes " << byte << ", sign " << sign << ", rows "
                                              << rows << ", activations " << activations);
              Tensor w = width.weights(kColumns, kDepth);
              w.bytes =
                  full<uint8_t>({static_cast<int64_t>(w.bytes.size())}, static_cast<uint8_t>(byte)).bytes;
              taken.emulated = byte == 255 && sign < 0;
              run_op(
                  LowBitFullyConnectedAttrs{
                      .block_size = block, .bits = width.bits, .activation_bits = activations},
                  {full<float>({rows, kDepth}, sign), w, full<float>({kColumns, kDepth / block}, 0.5f)},
                  taken);
            }
}

// Numbers of x of all magnitudes, beside each other: each is off by little of the largest of its neighbours.
TEST(LowBit, MagnitudesOfX) {
#ifdef __arm__  // NEON of 32-bit ARM flushes numbers below 2^-126, which are 2^-26 of the largest of these
  constexpr int kSmallest = -100;
#else
  constexpr int kSmallest = -140;
#endif
  const LowBitWidth widths[] = {{0, DType::kUint2}, {3, DType::kUint8}, {0, DType::kInt4},
                                {5, DType::kUint8}, {6, DType::kUint8}, {7, DType::kUint8},
                                {0, DType::kUint8}, {0, DType::kInt8}};
  constexpr int64_t kDepth = 512, kNeighbours = 16;
  const Tensor noisy = noise<float>({1, kDepth}, -1, 1, 8);
  const auto numbers = noisy.values<float>();
  for (const LowBitWidth& width : widths)
    for (int magnitude = kSmallest; magnitude <= 105; magnitude += 5) {
      SCOPED_TRACE(testing::Message() << dtype_name(width.type) << " " << width.bits << " 2^" << magnitude);
      std::vector<float> x(kDepth);
      // Of a row, neighbours are 2^7 times those before them, four times, and then begin again.
      for (int64_t k = 0; k < kDepth; ++k) {
        const int more = magnitude < 85 ? static_cast<int>(k / kNeighbours % 4 * 7) : 0;
        x[static_cast<size_t>(k)] = std::ldexp(numbers[static_cast<size_t>(k)], magnitude + more);
      }
      for (const int64_t largest : {0, 3, 511}) {
        x[static_cast<size_t>(largest)] = std::ldexp(largest == 3 ? -1.0f : 1.0f, magnitude);
        const Tensor w = width.weights(7, kDepth), s = full<float>({7, kDepth / 32}, 0.0625f);
        const std::vector<float> y = run_op(LowBitFullyConnectedAttrs{.block_size = 32, .bits = width.bits},
                                            {tensor<float>({1, kDepth}, x), w, s}, kLowBitTaken)[0]
                                         .values<float>();
        for (const float v : y) EXPECT_TRUE(std::isfinite(v));
      }
    }
}

TEST(LowBit, NarrowScales) {
  const Tensor x = noise<float>({2, 320}, -1, 1, 1), s = noise<float>({9, 10}, 0.05, 0.1, 2);
  const LowBitWidth width{0, DType::kUint4};
  for (const DType t : {DType::kFloat16, DType::kBFloat16})
    for (const int64_t rows : {1, 2, 9})
      for (const int64_t activations : {0, 8}) {
        SCOPED_TRACE(testing::Message() << dtype_name(t) << " " << rows << " " << activations);
        run_op(LowBitFullyConnectedAttrs{.block_size = 32, .activation_bits = activations},
               {noise<float>({rows, 320}, -1, 1, 1), width.weights(9, 320), halved(s, t), width.zeros(9, 10)},
               kLowBitTaken);
      }
}

TEST(LowBit, NumbersThatAreNotFinite) {
  // Infinities of x times weights that differ from their zero points, and sums of both signs; of few rows and
  // of many.
  const Tensor w = full<uint8_t>({5, 64}, 7), s = full<float>({5, 2}, 0.5f), zeros = full<uint8_t>({5, 2}, 3);
  for (const int64_t rows : {1, 2, 8})
    for (const int64_t activations : {0, 8}) {
      std::vector<float> numbers(static_cast<size_t>(rows) * 64, 1);
      for (size_t r = 0; r < numbers.size(); r += 64) numbers[r + 3] = r % 128 == 0 ? HUGE_VALF : NAN;
      const std::vector<float> y =
          run_op(LowBitFullyConnectedAttrs{.block_size = 32, .activation_bits = activations},
                 {tensor<float>({rows, 64}, numbers), w, s, zeros})[0]
              .values<float>();
      for (size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(y[i] == HUGE_VALF, activations == 0 && i % 10 < 5) << y[i];
        EXPECT_TRUE(i % 10 < 5 || std::isnan(y[i])) << y[i];
      }
    }
}

TEST(Conv, Shapes) {
  struct {
    Shape x, w;
    IntList strides, dilations, pads;
    int64_t group;
  } cases[] = {
      {{1, 9, 8}, {6, 3, 8}, {1}, {1}, {1, 1}, 1},
      {{2, 7, 9, 5}, {7, 3, 3, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
      {{1, 14, 13, 16}, {40, 3, 3, 16}, {2, 2}, {1, 1}, {0, 1, 2, 1}, 1},
      {{1, 8, 6, 6}, {9, 3, 2, 2}, {2, 1}, {1, 2}, {0, 1, 2, 1}, 3},
      {{2, 5, 5, 33}, {70, 1, 1, 33}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1},
      {{1, 5, 5, 32}, {64, 1, 1, 16}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 2},
      {{1, 9, 9, 8}, {8, 1, 1, 8}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 1},
      {{1, 4, 5, 6, 3}, {5, 2, 3, 2, 3}, {1, 2, 1}, {2, 1, 3}, {1, 0, 2, 0, 1, 1}, 1},
      {{1, 6, 6, 130}, {10, 3, 3, 130}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
      {{1, 3, 3, 2}, {3, 5, 5, 2}, {1, 1}, {1, 1}, {4, 3, 4, 5}, 1},
      {{0, 3, 3, 2}, {3, 1, 1, 2}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1},
      {{1, 12, 13, 20}, {3, 9, 9, 20}, {1, 1}, {1, 1}, {4, 4, 4, 4}, 1},
      {{1, 12, 13, 20}, {2, 1, 1, 20}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1},
      {{1, 7, 7, 20}, {9, 3, 3, 20}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1},
      {{1, 7, 7, 4}, {4, 3, 3, 1}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 4},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.x) + " by " + testing::PrintToString(c.w));
    ConvAttrs a;
    a.strides = c.strides, a.dilations = c.dilations, a.pads = c.pads, a.group = c.group;
    const Tensor x = noise<float>(c.x, -1, 1, 1), w = noise<float>(c.w, -1, 1, 2),
                 b = noise<float>({c.w[0]}, -1, 1, 3);
    check_taken_by("simd", a, {x, w});
    a.act_min = 0, a.act_max = 6;
    check_taken_by("simd", a, {x, w, b});
  }
}

TEST(DepthwiseConv, Shapes) {
  struct {
    Shape x, w;
    IntList strides, dilations, pads;
  } cases[] = {
      {{2, 9, 3}, {3, 3}, {1}, {1}, {1, 1}},
      {{1, 7, 6, 17}, {3, 3, 17}, {2, 1}, {1, 2}, {1, 0, 2, 2}},
      {{2, 5, 5, 70}, {5, 5, 70}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
      {{1, 4, 4, 3, 40}, {3, 1, 2, 40}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1, 1, 0, 1}},
      {{1, 9, 30, 16}, {3, 3, 16}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{1, 9, 30, 21}, {3, 5, 21}, {1, 2}, {1, 1}, {1, 1, 2, 2}},
      {{1, 9, 30, 4}, {3, 3, 4}, {1, 3}, {1, 2}, {0, 0, 0, 0}},
      {{1, 4, 3, 4}, {3, 5, 4}, {1, 1}, {1, 2}, {1, 5, 1, 4}},
      {{1, 2, 2, 5}, {2, 2, 5}, {1, 1}, {3, 3}, {6, 6, 6, 6}},  // windows outside the input
      {{2, 2, 2, 20}, {3, 3, 20}, {1, 1}, {1, 1}, {4, 4, 5, 6}},
      {{1, 3, 4, 7, 18}, {2, 3, 5, 18}, {1, 2, 1}, {2, 1, 1}, {1, 1, 2, 1, 1, 2}},
      {{1, 9, 12, 300}, {3, 3, 300}, {1, 1}, {2, 1}, {1, 1, 1, 1}},  // more channels than a block has
      {{1, 5, 12, 530}, {5, 5, 530}, {2, 2}, {1, 1}, {2, 2, 2, 2}},
      {{1, 36, 50, 96}, {3, 3, 96}, {1, 1}, {1, 1}, {1, 1, 1, 1}},  // larger than caches
      {{1, 60, 60, 96}, {5, 3, 96}, {2, 2}, {1, 1}, {2, 0, 2, 1}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.x) + " by " + testing::PrintToString(c.w));
    DepthwiseConvAttrs a;
    a.strides = c.strides, a.dilations = c.dilations, a.pads = c.pads;
    const Tensor x = noise<float>(c.x, -1, 1, 1), w = noise<float>(c.w, -1, 1, 2);
    check_taken_by("simd", a, {x, w});
    a.act_min = -0.5, a.act_max = 0.5;
    check_taken_by("simd", a, {x, w, noise<float>({c.w.back()}, -1, 1, 3)});
  }
}

// Every number of columns that a block may have, with and without padding, and channels around whole vectors.
TEST(DepthwiseConv, Blocks) {
  const int64_t channels[] = {3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 33, 50};
  const int64_t pads[][2] = {{0, 0}, {1, 1}, {2, 2}, {2, 0}, {0, 1}};
  size_t next = 0;
  for (const int64_t kernel : {3, 5})
    for (const int64_t stride : {1, 2, 3})
      for (const int64_t width : {1, 2, 3, 4, 5, 6, 7, 8, 9, 18})
        for (const auto& [before, after] : pads) {
          if (width + before + after < kernel) continue;
          const int64_t c = channels[next++ % std::size(channels)];
          SCOPED_TRACE(testing::Message()
                       << "kernel " << kernel << ", stride " << stride << ", width " << width << ", pads "
                       << before << " and " << after << ", channels " << c);
          DepthwiseConvAttrs a;
          a.strides = {1, stride}, a.dilations = {1, 1}, a.pads = {1, before, 1, after};
          check_taken_by("simd", a,
                         {noise<float>({1, 4, width, c}, -1, 1, 1), noise<float>({3, kernel, c}, -1, 1, 2),
                          noise<float>({c}, -1, 1, 3)});
        }
}

// Whole lines of windows of 3x3: every number of columns that remain of an unrolled loop, windows with one,
// two and three lines inside, and channels whose last vectors overlap others.
TEST(DepthwiseConv, Lines) {
  const int64_t channels[] = {8, 13, 24, 50};
  size_t next = 0;
  for (const int64_t stride : {1, 2})
    for (const int64_t width : {3, 4, 5, 6, 7, 8, 9, 12, 19})
      for (const int64_t before : {0, 1})
        for (const int64_t after : {0, 1})
          for (const int64_t top : {0, 1, 2}) {
            const int64_t c = channels[next++ % std::size(channels)],
                          height = 1 + static_cast<int64_t>(next) % 6;
            if (height + 2 * top < 3) continue;
            SCOPED_TRACE(testing::Message()
                         << "stride " << stride << ", " << height << " by " << width << ", pads " << top
                         << ", " << before << " and " << after << ", channels " << c);
            DepthwiseConvAttrs a;
            a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {top, before, top, after};
            a.act_min = 0;
            if (next % 2 == 0) a.act_max = 0.5;
            const Tensor x = noise<float>({2, height, width, c}, -1, 1, 1),
                         w = noise<float>({3, 3, c}, -1, 1, 2);
            check_taken_by("simd", a, {x, w});
            check_taken_by("simd", a, {x, w, noise<float>({c}, -1, 1, 3)});
          }
}

// Every number of rows of a block, and every number of depths that remain of an unrolled loop; more depth
// than one piece.
// Blocks of rows that are copied for many columns.
TEST(FullyConnected, ManyColumns) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 50})
    for (const int64_t depth : {1, 3, 4, 8, 27, 58, 112, 113, 125, 128, 129}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, depth " << depth);
      const Tensor x = noise<float>({rows, depth}, -1, 1, 1), w = noise<float>({83, depth}, -1, 1, 2);
      check_taken_by("simd", FullyConnectedAttrs{}, {x, w});
      check_taken_by("simd", FullyConnectedAttrs{.act_min = -0.25, .act_max = 0.5},
                     {x, w, noise<float>({83}, -1, 1, 3)});
    }
}

// Rows of much depth, of which blocks are copied piece by piece.
TEST(Conv, ManyColumnsOfMuchDepth) {
  for (const int64_t channels : {129, 515, 1030})
    for (const int64_t columns : {48, 83}) {
      SCOPED_TRACE(testing::Message() << channels << " to " << columns);
      const Tensor b = noise<float>({columns}, -1, 1, 3);
      ConvAttrs a;
      a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
      a.act_min = -0.5, a.act_max = 4;
      const Tensor x = noise<float>({1, 3, 7, channels}, -1, 1, 1);
      check_taken_by("simd", a, {x, noise<float>({columns, 1, 1, channels}, -1, 1, 2), b});
      a.strides = {2, 2};
      check_taken_by("simd", a, {x, noise<float>({columns, 1, 2, channels}, -1, 1, 2), b});
    }
}

TEST(FullyConnected, Blocks) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 15})
    for (const int64_t depth : {1, 2, 3, 4, 5, 6, 7, 8, 15, 17, 35, 530}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, depth " << depth);
      const Tensor x = noise<float>({rows, depth}, -1, 1, 1), w = noise<float>({20, depth}, -1, 1, 2);
      FullyConnectedAttrs a;
      check_taken_by("simd", a, {x, w});
      a.act_min = -0.25;
      check_taken_by("simd", a, {x, w, noise<float>({20}, -1, 1, 3)});
      a.act_max = 0.5;
      check_taken_by("simd", a, {x, w, noise<float>({20}, -1, 1, 3)});
    }
}

TEST(ConvTranspose, Shapes) {
  struct {
    Shape x, w;
    IntList strides, dilations, pads, extra;
    int64_t group;
  } cases[] = {
      {{2, 5, 3}, {4, 3, 3}, {2}, {1}, {1, 1}, {1}, 1},
      {{1, 4, 4}, {6, 4, 2}, {3}, {2}, {0, 2}, {0}, 2},
      {{1, 4, 2}, {3, 2, 2}, {5}, {1}, {0, 0}, {2}, 1},
      {{1, 4, 2}, {3, 3, 2}, {4}, {2}, {-1, -2}, {0}, 1},
      {{2, 5, 4, 5}, {7, 3, 3, 5}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 0}, 1},
      {{1, 10, 9, 33}, {40, 4, 4, 33}, {2, 2}, {1, 1}, {1, 1, 1, 1}, {0, 0}, 1},
      {{1, 2, 3, 4, 3}, {5, 2, 3, 2, 3}, {1, 2, 3}, {2, 1, 1}, {1, 0, 0, 0, 1, 1}, {0, 1, 0}, 1},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.x) + " by " + testing::PrintToString(c.w));
    ConvTransposeAttrs a;
    a.strides = c.strides, a.dilations = c.dilations, a.pads = c.pads, a.output_padding = c.extra,
    a.group = c.group;
    const Tensor x = noise<float>(c.x, -1, 1, 1), w = noise<float>(c.w, -1, 1, 2);
    check_taken_by("simd", a, {x, w});
    a.act_min = 0, a.act_max = 6;
    check_taken_by("simd", a, {x, w, noise<float>({c.w[0]}, -1, 1, 3)});
  }
}

template <class A>
void check_pool() {
  struct {
    Shape x;
    IntList kernel, strides, dilations, pads;
  } cases[] = {
      {{2, 9, 3}, {3}, {1}, {1}, {1, 1}},
      {{1, 7, 6, 17}, {3, 3}, {2, 1}, {1, 2}, {1, 0, 2, 2}},
      {{2, 8, 8, 70}, {2, 2}, {2, 2}, {}, {}},
      {{1, 4, 4, 3, 40}, {3, 1, 2}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1, 1, 0, 1}},
      {{1, 6, 5}, {2}, {}, {}, {}},
  };
  for (const auto& c : cases)
    for (const int64_t ceil_mode : {0, 1}) {
      SCOPED_TRACE(testing::PrintToString(c.x));
      A a;
      a.kernel = c.kernel, a.strides = c.strides, a.dilations = c.dilations, a.pads = c.pads,
      a.ceil_mode = ceil_mode;
      const Tensor x = noise<float>(c.x, -1, 1, 1);
      check_taken_by("simd", a, {x});
      if constexpr (A::kOp == Op::kAvgPool) {
        a.count_include_pad = 1;
        check_taken_by("simd", a, {x});
      }
    }
}

TEST(Pool, Shapes) {
  check_pool<MaxPoolAttrs>();
  check_pool<AvgPoolAttrs>();
}

TEST(MaxPool, NanWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  MaxPoolAttrs a;
  a.kernel = {2};
  check_taken_by("simd", a, {tensor<float>({1, 6, 1}, {1, nan, 3, -inf, -inf, -inf})});
}

TEST(Attention, Shapes) {
  const int64_t all[][7] = {// batch, heads, groups, queries, keys, key size, value size
                            {1, 1, 1, 3, 3, 4, 4},
                            {2, 4, 2, 5, 7, 9, 3},
                            {1, 6, 1, 1, 12, 8, 5},
                            {2, 2, 2, 6, 3, 5, 2},
                            {1, 2, 2, 100, 130, 33, 40}};
  for (const auto& s : all)
    for (const int64_t causal : {0, 1}) {
      SCOPED_TRACE(testing::PrintToString(s));
      const Tensor q = noise<float>({s[0], s[1], s[3], s[5]}, -2, 2, 1),
                   k = noise<float>({s[0], s[2], s[4], s[5]}, -2, 2, 2);
      const Tensor v = noise<float>({s[0], s[2], s[4], s[6]}, -2, 2, 3);
      const AttentionAttrs a{.scale = 0.35, .causal = causal};
      check_taken_by("simd", a, {q, k, v});
      auto bias = noise<float>({s[3], s[4]}, -1, 1, 4).values<float>();
      bias[0] = -std::numeric_limits<float>::infinity();
      check_taken_by("simd", a, {q, k, v, tensor<float>({s[3], s[4]}, bias)});
      check_taken_by("simd", a, {q, k, v, noise<float>({s[0], 1, s[3], 1}, -1, 1, 4)});
      check_taken_by("simd", a, {q, k, v, noise<float>({s[1], 1, s[4]}, -1, 1, 4)});
    }
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor one = full<float>({1, 1, 1, 1}, 1), q = full<float>({1, 1, 2, 1}, inf);
  check_taken_by("simd", AttentionAttrs{}, {q, one, one, tensor<float>({2, 1}, {-inf, -inf})});
  check_taken_by("simd", AttentionAttrs{.causal = 1}, {full<float>({1, 1, 2, 1}, 1), one, one});
  check_taken_by("simd", AttentionAttrs{},
                 {full<float>({1, 1, 2, 1}, 1), full<float>({1, 1, 0, 1}, 1), full<float>({1, 1, 0, 1}, 1)});
}

TEST(Attention, RulesForBiasesOfAnyLength) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t rule : {0, 1, 2, 3})
    for (const int64_t keys : {1, 3, 21}) {
      SCOPED_TRACE(testing::PrintToString(std::pair{rule, keys}));
      const AttentionAttrs a{.scale = 0.5, .rule = rule};
      const Tensor q = noise<float>({2, 3, 5, 4}, -2, 2, 1), k = noise<float>({2, 3, keys, 4}, -2, 2, 2),
                   v = noise<float>({2, 3, keys, 6}, -2, 2, 3);
      // Rows of nothing, some, and all keys masked; by nothing that float32 adds to a score but float64 does
      // not.
      for (const float low : {-inf, -std::numeric_limits<float>::max(), -1e30f, nan}) {
        std::vector<float> bias(static_cast<size_t>(5 * keys));
        for (size_t i = 0; i < bias.size(); ++i) {
          const size_t row = i / static_cast<size_t>(keys), j = i % static_cast<size_t>(keys);
          bias[i] = row == 0 || row >= 3 || (row == 1 && j % 2 == 1) ? low : row == 2 ? 0.25f : 0;
        }
        check_taken_by("simd", a, {q, k, v, tensor<float>({5, keys}, bias)});
        check_taken_by("simd", a, {q, k, v, full<float>({2, 1, 1, 1}, low)});
      }
    }
}

}  // namespace
}  // namespace sinter::test
