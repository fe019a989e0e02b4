// MatMul, FullyConnected, Conv and DepthwiseConv of the simd table against the reference in float64.
#include <algorithm>
#include <cmath>
#include <limits>

#include "platforms/simd/simd_backend.h"
#include "platforms/simd/simd_kernels.h"
#include "tests/op_harness/simd_test.h"

namespace sinter::test {
namespace {

// Five standard deviations of the error of a float32 sum of n products of numbers spread over (-1, 1). After
// k terms the sum is about sqrt(k) / 3 and rounds by 2^-24 of that at most, so that the errors of one piece
// of at most 512 terms add up to 2^-24 / sqrt(3) * n / sqrt(18); the errors of the pieces are independent.
double sum_tolerance(int64_t n) {
  const double piece = static_cast<double>(std::min<int64_t>(n, 512)),
               pieces = static_cast<double>(n / 512 + 1);
  return 5 * 0x1p-24 * piece / std::sqrt(54.0) * std::sqrt(pieces) + 3e-7;
}

TEST(SimdMatMul, Sizes) {
  const int64_t sizes[][3] = {{1, 1, 1},      {3, 5, 7},   {6, 16, 32},  {1, 700, 90},
                              {5, 33, 64},    {7, 13, 65}, {50, 64, 50}, {100, 7, 33},
                              {13, 2500, 40}, {2, 3, 1},   {8, 40, 31},  {9, 40, 129}};
  for (const auto& [m, k, n] : sizes) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    const Tensor a = noise<float>({m, k}, -1, 1, 1), b = noise<float>({k, n}, -1, 1, 2);
    const Tensor at = noise<float>({k, m}, -1, 1, 1), bt = noise<float>({n, k}, -1, 1, 2);
    const double t = sum_tolerance(k);
    check_simd(MatMulAttrs{}, {a, b}, 1e-6, t);
    check_simd(MatMulAttrs{.transpose_a = 1}, {at, b}, 1e-6, t);
    check_simd(MatMulAttrs{.transpose_b = 1}, {a, bt}, 1e-6, t);
    check_simd(MatMulAttrs{.transpose_a = 1, .transpose_b = 1}, {at, bt}, 1e-6, t);
    check_simd(FullyConnectedAttrs{}, {a, bt}, 1e-6, t);
    check_simd(FullyConnectedAttrs{.act_min = -0.5, .act_max = 0.25}, {a, bt, noise<float>({n}, -1, 1, 3)},
               1e-6, t);
  }
}

TEST(SimdMatMul, Batches) {
  const std::pair<Shape, Shape> shapes[] = {
      {{2, 5, 8}, {2, 8, 9}}, {{5, 8}, {3, 8, 9}},    {{4, 1, 5, 8}, {3, 8, 40}},    {{7, 12, 8}, {1, 8, 9}},
      {{2, 0, 8}, {2, 8, 9}}, {{2, 5, 0}, {2, 0, 9}}, {{2, 3, 9, 4}, {2, 1, 4, 40}}, {{0, 5, 8}, {1, 8, 9}}};
  for (const auto& [a, b] : shapes) {
    SCOPED_TRACE(testing::PrintToString(a) + " by " + testing::PrintToString(b));
    check_simd(MatMulAttrs{}, {noise<float>(a, -1, 1, 1), noise<float>(b, -1, 1, 2)}, 1e-6, 2e-6);
    Shape t = b;
    std::swap(t[t.size() - 1], t[t.size() - 2]);
    check_simd(MatMulAttrs{.transpose_b = 1}, {noise<float>(a, -1, 1, 1), noise<float>(t, -1, 1, 2)}, 1e-6,
               2e-6);
  }
  check_simd(FullyConnectedAttrs{},
             {full<float>({7, 0}, 1), full<float>({3, 0}, 1), tensor<float>({3}, {1, 2, 3})});
  check_simd(FullyConnectedAttrs{},
             {full<float>({2, 0}, 1), full<float>({3, 0}, 1), tensor<float>({3}, {1, 2, 3})});
}

TEST(SimdLowBit, Sizes) {
  // Rows, columns, depth, block: blocks shorter and longer than vectors, rows that end within one.
  const int64_t sizes[][4] = {{1, 1, 2, 2},       {1, 9, 64, 32},    {2, 33, 96, 16}, {3, 70, 640, 128},
                              {4, 5, 90, 32},     {1, 7, 50, 1000},  {5, 7, 34, 16},  {6, 65, 96, 32},
                              {50, 130, 600, 24}, {7, 3, 1030, 4},   {1, 0, 32, 32},  {2, 3, 2050, 64},
                              {0, 3, 32, 32},     {97, 200, 40, 64}, {1, 40, 62, 34}};
  for (const auto& [m, n, k, block] : sizes) {
    const int64_t blocks = (k + block - 1) / block;
    const Tensor x = noise<float>({m, k}, -1, 1, 1), s = noise<float>({n, blocks}, 0.05, 0.1, 2),
                 bias = noise<float>({n}, -1, 1, 3);
    const LowBitFullyConnectedAttrs a{.block_size = block};
    for (const DType t : {DType::kUint4, DType::kInt4, DType::kUint8, DType::kInt8}) {
      SCOPED_TRACE(testing::Message()
                   << m << " x " << n << " x " << k << " by " << block << " " << dtype_name(t));
      const bool narrow = t == DType::kUint4 || t == DType::kInt4;
      const auto packed = [&](const Shape& dims, uint64_t seed) {
        int64_t count = dims[0] * dims[1];
        if (narrow) count = (count + 1) / 2;
        return Tensor{t, dims, noise<uint8_t>({count}, 0, 256, seed).bytes};
      };
      const Tensor w = packed({n, k}, 4), zeros = packed({n, blocks}, 5);
      // Weights of up to 15 or 255 times 0.1.
      const double tolerance = (narrow ? 1.5 : 25.5) * sum_tolerance(k);
      check_simd(a, {x, w, s}, 1e-6, tolerance);
      check_simd(a, {x, w, s, zeros, bias}, 1e-6, tolerance);
      if (t == DType::kUint4 || t == DType::kUint8)
        check_simd(LowBitFullyConnectedAttrs{.block_size = block, .act_min = -0.5, .act_max = 0.25},
                   {x, w, s, noise<float>({n, blocks}, 0, 9, 6)}, 1e-6, tolerance);
    }
  }
}

TEST(SimdLowBit, LeavesOddBlocksToTheReference) {
  const Tensor x = full<float>({1, 6}, 1), w{DType::kInt4, {2, 6}, std::vector<std::byte>(6)};
  std::vector<Tensor> y;
  EXPECT_FALSE(
      run_simd(LowBitFullyConnectedAttrs{.block_size = 3}, {x, w, full<float>({2, 2}, 1)}, nullptr, {}, &y));
}

TEST(SimdConv, Shapes) {
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
    const double t = sum_tolerance(w.size() / c.w[0]);
    check_simd(a, {x, w}, 1e-6, t);
    a.act_min = 0, a.act_max = 6;
    check_simd(a, {x, w, b}, 1e-6, t);
  }
}

TEST(SimdDepthwiseConv, Shapes) {
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
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.x) + " by " + testing::PrintToString(c.w));
    DepthwiseConvAttrs a;
    a.strides = c.strides, a.dilations = c.dilations, a.pads = c.pads;
    const Tensor x = noise<float>(c.x, -1, 1, 1), w = noise<float>(c.w, -1, 1, 2);
    check_simd(a, {x, w}, 1e-6, 2e-6);
    a.act_min = -0.5, a.act_max = 0.5;
    check_simd(a, {x, w, noise<float>({c.w.back()}, -1, 1, 3)}, 1e-6, 2e-6);
  }
}

TEST(SimdConvTranspose, Shapes) {
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
    const double t = sum_tolerance(w.size() / c.w[0]);
    check_simd(a, {x, w}, 1e-6, t);
    a.act_min = 0, a.act_max = 6;
    check_simd(a, {x, w, noise<float>({c.w[0]}, -1, 1, 3)}, 1e-6, t);
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
      check_simd(a, {x}, 1e-6, 1e-6);
      if constexpr (A::kOp == Op::kAvgPool) {
        a.count_include_pad = 1;
        check_simd(a, {x}, 1e-6, 1e-6);
      }
    }
}

TEST(SimdPool, Shapes) {
  check_pool<MaxPoolAttrs>();
  check_pool<AvgPoolAttrs>();
}

TEST(SimdMaxPool, NanWins) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  MaxPoolAttrs a;
  a.kernel = {2};
  check_simd(a, {tensor<float>({1, 6, 1}, {1, nan, 3, -inf, -inf, -inf})}, 0, 0);
}

TEST(SimdAttention, Shapes) {
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
      // Errors of the scores are relative errors of the weights.
      check_simd(a, {q, k, v}, 2e-5, 2e-5);
      auto bias = noise<float>({s[3], s[4]}, -1, 1, 4).values<float>();
      bias[0] = -std::numeric_limits<float>::infinity();
      check_simd(a, {q, k, v, tensor<float>({s[3], s[4]}, bias)}, 2e-5, 2e-5);
      check_simd(a, {q, k, v, noise<float>({s[0], 1, s[3], 1}, -1, 1, 4)}, 2e-5, 2e-5);
      check_simd(a, {q, k, v, noise<float>({s[1], 1, s[4]}, -1, 1, 4)}, 2e-5, 2e-5);
    }
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor one = full<float>({1, 1, 1, 1}, 1), q = full<float>({1, 1, 2, 1}, inf);
  check_simd(AttentionAttrs{}, {q, one, one, tensor<float>({2, 1}, {-inf, -inf})}, 0, 0);
  check_simd(AttentionAttrs{.causal = 1}, {full<float>({1, 1, 2, 1}, 1), one, one}, 0, 0);
  check_simd(AttentionAttrs{},
             {full<float>({1, 1, 2, 1}, 1), full<float>({1, 1, 0, 1}, 1), full<float>({1, 1, 0, 1}, 1)}, 0,
             0);
}

TEST(SimdAttention, RulesForBiases) {
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
        check_simd(a, {q, k, v, tensor<float>({5, keys}, bias)}, 2e-5, 2e-5);
        check_simd(a, {q, k, v, full<float>({2, 1, 1, 1}, low)}, 2e-5, 2e-5);
      }
    }
}

TEST(SimdBackend, PacksConstantWeightsOnce) {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  check_packed(a,
               {noise<float>({2, 9, 8, 5}, -1, 1, 1), noise<float>({37, 3, 3, 5}, -1, 1, 2),
                noise<float>({37}, -1, 1, 3)},
               true);
  a.group = 2;
  check_packed(a, {noise<float>({1, 9, 8, 6}, -1, 1, 1), noise<float>({40, 3, 3, 3}, -1, 1, 2)}, true);
  a.pads = {0, 0, 0, 0}, a.group = 1;
  check_packed(a, {noise<float>({1, 9, 8, 6}, -1, 1, 1), noise<float>({40, 1, 1, 6}, -1, 1, 2)}, true);
  check_packed(
      FullyConnectedAttrs{},
      {noise<float>({7, 70}, -1, 1, 1), noise<float>({40, 70}, -1, 1, 2), noise<float>({40}, -1, 1, 3)},
      true);
  check_packed(FullyConnectedAttrs{}, {noise<float>({2, 70}, -1, 1, 1), noise<float>({40, 70}, -1, 1, 2)},
               true);
  check_packed(FullyConnectedAttrs{}, {noise<float>({1, 70}, -1, 1, 1), noise<float>({40, 70}, -1, 1, 2)},
               false);
  check_packed(AddAttrs{}, {noise<float>({2, 70}, -1, 1, 1), noise<float>({70}, -1, 1, 2)}, false);
}

}  // namespace
}  // namespace sinter::test
