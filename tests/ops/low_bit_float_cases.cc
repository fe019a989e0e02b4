// LowBitFullyConnected with weights of float8 and float4.
#include <cmath>

#include "runtime/core/float_formats.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

constexpr DType kFormats[] = {DType::kFloat4E2M1, DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ,
                              DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ};

// Weights of float64 do not exist.
const RunOptions kTaken{.in_float64 = false, .taken_by = {"simd"}};

bool is_finite_code(DType t, uint8_t code) {
  switch (t) {
    case DType::kFloat8E4M3FN:
      return (code & 0x7f) < 0x7f;
    case DType::kFloat8E5M2:
      return (code & 0x7f) < 0x7c;
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
      return code != 0x80;
    default:
      return true;
  }
}

// Finite numbers.
Tensor codes(DType t, const Shape& dims, uint64_t seed) {
  std::vector<uint8_t> bytes =
      noise<uint8_t>({(dims[0] * dims[1] * bit_width(t) + 7) / 8}, 0, 256, seed).values<uint8_t>();
  for (uint8_t& b : bytes)
    if (!is_finite_code(t, b)) b = static_cast<uint8_t>(0x35 ^ (b & 7));
  return {t, dims, tensor<uint8_t>({static_cast<int64_t>(bytes.size())}, bytes).bytes};
}

TEST(LowBitFloats, Sizes) {
  // Rows, columns, depth, block: as of LowBit.Sizes, and blocks of an odd length.
  const int64_t sizes[][4] = {{1, 1, 2, 2},       {1, 9, 64, 32},   {2, 33, 96, 16},   {3, 70, 640, 128},
                              {4, 5, 90, 32},     {1, 7, 50, 1000}, {5, 7, 34, 16},    {6, 65, 96, 32},
                              {50, 130, 600, 24}, {7, 3, 1030, 4},  {1, 0, 32, 32},    {2, 3, 2050, 64},
                              {0, 3, 32, 32},     {1, 40, 62, 34},  {3, 6, 1032, 512}, {1, 13, 4160, 32},
                              {1, 5, 4096, 4096}, {2, 7, 51, 13},   {9, 7, 51, 13},    {1, 7, 333, 333}};
  for (const auto& [m, n, k, block] : sizes) {
    const int64_t blocks = (k + block - 1) / block;
    const Tensor x = noise<float>({m, k}, -1, 1, 1), s = noise<float>({n, blocks}, 0.05, 0.1, 2),
                 bias = noise<float>({n}, -1, 1, 3);
    for (const DType t : kFormats) {
      if (bit_width(t) == 4 && (k % 2 != 0 || (block < k && block % 2 != 0))) continue;
      SCOPED_TRACE(testing::Message()
                   << m << " x " << n << " x " << k << " by " << block << " " << dtype_name(t));
      LowBitFullyConnectedAttrs a{.block_size = block};
      const Tensor w = codes(t, {n, k}, 4);
      RunOptions taken = kTaken;
      taken.emulated = m * n * k <= 1 << 18;  // CUDA's kernel computes one result at a time
      run_op(a, {x, w, s}, taken);
      a.act_min = -0.5, a.act_max = 0.25;
      run_op(a, {x, w, s, {}, bias}, taken);
    }
  }
}

// Every code at every place of a vector, one in each column: exactly the number that it stands for.
TEST(LowBitFloats, EveryCode) {
  for (const DType t : kFormats)
    for (const int64_t rows : {1, 3, 6}) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << " " << rows);
      const int64_t width = bit_width(t), count = int64_t{1} << width, depth = 130;
      std::vector<uint8_t> bytes(static_cast<size_t>(count * depth * width / 8));
      std::vector<float> x(static_cast<size_t>(rows * depth), 1);
      for (int64_t code = 0; code < count; ++code) {
        const int64_t bit = (code * depth + (code * 37 + 5) % depth) * width;
        bytes[static_cast<size_t>(bit / 8)] |= static_cast<uint8_t>(code << (bit % 8));
      }
      const Tensor w{t, {count, depth}, tensor<uint8_t>({static_cast<int64_t>(bytes.size())}, bytes).bytes};
      const std::vector<float> y =
          run_op(LowBitFullyConnectedAttrs{.block_size = depth},
                 {tensor<float>({rows, depth}, x), w, full<float>({count, 1}, 1)}, kTaken)[0]
              .values<float>();
      for (size_t i = 0; i < y.size(); ++i) {
        const auto code = static_cast<uint8_t>(static_cast<int64_t>(i) % count);
        if (t == DType::kFloat8E5M2 && (code & 0x7f) == 0x7c)
          EXPECT_EQ(y[i], code == 0x7c ? kInf : -kInf);
        else
          EXPECT_EQ(std::isfinite(y[i]), is_finite_code(t, code)) << int{code};
      }
    }
}

TEST(LowBitFloats, Scales) {
  for (const DType t : kFormats)
    for (const DType scale : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E8M0, DType::kFloat8E4M3FN,
                              DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ})
      for (const int64_t block : {16, 32, 320})
        for (const int64_t rows : {1, 2, 9}) {
          SCOPED_TRACE(testing::Message()
                       << dtype_name(t) << " " << dtype_name(scale) << " by " << block << " " << rows);
          const Shape dims{9, 320 / block};
          const Tensor s = byte_width(scale) == 2 ? halved(noise<float>(dims, 0.05, 0.1, 2), scale)
                           : scale == DType::kFloat8E8M0
                               ? Tensor{scale, dims, noise<uint8_t>(dims, 110, 140, 2).bytes}
                               : codes(scale, dims, 2);
          run_op(LowBitFullyConnectedAttrs{.block_size = block},
                 {noise<float>({rows, 320}, -1, 1, 1), codes(t, {9, 320}, 4), s}, kTaken);
        }
}

// The smallest power and NaN of float8e8m0.
TEST(LowBitFloats, EndsOfPowers) {
  for (const DType t : kFormats)
    for (const int64_t rows : {1, 2, 9}) {
      const Tensor s{DType::kFloat8E8M0, {3, 2}, tensor<uint8_t>({6}, {0, 0, 230, 1, 255, 127}).bytes};
      const std::vector<float> y =
          run_op(LowBitFullyConnectedAttrs{.block_size = 32},
                 {noise<float>({rows, 64}, 0, 1e-6, 1), codes(t, {3, 64}, 4), s}, kTaken)[0]
              .values<float>();
      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i % 3 == 2);
    }
}

// A number that is not finite stays in its row and its block: the x of other blocks is not multiplied with
// it, also where vectors reach beyond the ends.
TEST(LowBitFloats, NumbersThatAreNotFinite) {
  const std::pair<DType, uint8_t> kinds[] = {{DType::kFloat8E4M3FN, 0x7f},   {DType::kFloat8E4M3FN, 0xff},
                                             {DType::kFloat8E4M3FNUZ, 0x80}, {DType::kFloat8E5M2, 0x7e},
                                             {DType::kFloat8E5M2, 0x7c},     {DType::kFloat8E5M2FNUZ, 0x80}};
  for (const auto& [t, code] : kinds)
    for (const int64_t depth : {64, 70})
      for (const int64_t block : {32, 10})
        for (const int64_t rows : {1, 3, 8})
          for (const size_t at :
               {size_t{0}, size_t{9}, size_t{31}, size_t{32}, static_cast<size_t>(depth) - 1}) {
            SCOPED_TRACE(testing::Message() << dtype_name(t) << " " << int{code} << " at " << at << " of "
                                            << depth << " by " << block << " " << rows);
            Tensor w = codes(t, {7, depth}, 4);
            w.bytes[3 * static_cast<size_t>(depth) + at] = static_cast<std::byte>(code);
            const std::vector<float> y = run_op(LowBitFullyConnectedAttrs{.block_size = block},
                                                {noise<float>({rows, depth}, -1, 1, 1), w,
                                                 noise<float>({7, (depth + block - 1) / block}, 0.5, 1, 2)},
                                                kTaken)[0]
                                             .values<float>();
            for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isfinite(y[i]), i % 7 != 3) << i;
          }
  // Infinities of x.
  for (const DType t : kFormats)
    for (const int64_t rows : {2, 8}) {
      std::vector<float> numbers(static_cast<size_t>(rows) * 64, 1);
      for (size_t r = 0; r < numbers.size(); r += 128) numbers[r + 3] = kInf, numbers[r + 64 + 3] = kNan;
      const Tensor w{t, {5, 64}, full<uint8_t>({5 * 64 * bit_width(t) / 8}, 0x33).bytes};
      const std::vector<float> y =
          run_op(LowBitFullyConnectedAttrs{.block_size = 32},
                 {tensor<float>({rows, 64}, numbers), w, full<float>({5, 2}, 0.5f)}, kTaken)[0]
              .values<float>();
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_TRUE(i % 10 < 5 ? y[i] == kInf : std::isnan(y[i])) << dtype_name(t) << " " << y[i];
    }
}

}  // namespace
}  // namespace sinter::test
