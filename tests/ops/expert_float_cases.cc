// ExpertFullyConnected with weights of float8 and float4, or indices into a table, and scales of any type,
// against the formula, on every backend.
#include <algorithm>
#include <cmath>

#include "runtime/core/float_formats.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

// uint4: indices into a table.
constexpr DType kFormats[] = {DType::kFloat4E2M1, DType::kFloat8E4M3FN,   DType::kFloat8E4M3FNUZ,
                              DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ, DType::kUint4};
constexpr DType kScaleTypes[] = {DType::kFloat32,    DType::kFloat16,      DType::kBFloat16,
                                 DType::kFloat8E8M0, DType::kFloat8E4M3FN, DType::kFloat8E5M2};

const RunOptions kTaken{.in_float64 = false, .taken_by = {"simd", "cuda-emulated"}};
const RunOptions kAny{.in_float64 = false};

// Of all significant bits, and not in order.
Tensor table_of_16() {
  return tensor<float>(
      {16}, {-1.0f, 0.6961928f, -0.52507305f, 0.0f, 1.0f, -0.18477343f, 0.3379152f, 0.5626170f, -0.75f,
             0.16093020f, 0.24611230f, -0.091050f, 0.44070983f, 0.72295684f, 0.0795803f, -0.28444138f});
}

double float_of(DType t, unsigned code) {
  if (is_float8(t)) return float8_value(t, static_cast<uint8_t>(code));
  return decode_float<kFloat4E2M1Format>(code);
}

// Finite numbers of float8, any code of 4 bits.
Tensor weights_of(DType t, const Shape& dims, uint64_t seed) {
  const int64_t bytes = (dims[0] * dims[1] * dims[2] * bit_width(t) + 7) / 8;
  std::vector<uint8_t> v = noise<uint8_t>({bytes}, 0, 256, seed).values<uint8_t>();
  if (is_float8(t))
    for (uint8_t& b : v)
      if (!std::isfinite(float_of(t, b))) b = static_cast<uint8_t>(0x35 ^ (b & 7));
  return {t, dims, tensor<uint8_t>({bytes}, v).bytes};
}

Tensor scales_of(DType t, const Shape& dims, uint64_t seed) {
  if (t == DType::kFloat8E8M0) return {t, dims, noise<uint8_t>(dims, 118, 130, seed).bytes};
  if (is_float8(t)) return {t, dims, noise<uint8_t>(dims, 0x20, 0x38, seed).bytes};
  const Tensor wide = noise<float>(dims, 0.05, 0.1, seed);
  return t == DType::kFloat32 ? wide : halved(wide, t);
}

double scale_at(const Tensor& s, size_t i) {
  if (is_float8(s.dtype)) return float8_value(s.dtype, static_cast<uint8_t>(s.bytes[i]));
  if (s.dtype == DType::kFloat32) return static_cast<double>(s.values<float>()[i]);
  return static_cast<double>(unhalved<float>(s).values<float>()[i]);
}

struct ExpertCase {
  int64_t rows, experts, columns, depth, block;

  int64_t blocks() const { return (depth + block - 1) / block; }
  std::vector<Tensor> operands(DType weights, DType scale) const {
    std::vector<int64_t> chosen;
    for (int64_t r = 0; r < rows; ++r) chosen.push_back(r % 3 == 0 ? experts - 1 : r * r % experts);
    std::vector<Tensor> in = {noise<float>({rows, depth}, -1, 1, 1),
                              tensor<int64_t>({rows}, chosen),
                              weights_of(weights, {experts, columns, depth}, 2),
                              scales_of(scale, {experts, columns, blocks()}, 3),
                              {},
                              noise<float>({experts, columns}, -1, 1, 4)};
    if (weights == DType::kUint4) in.push_back(table_of_16());
    return in;
  }
  Tensor formula(const std::vector<Tensor>& in) const {
    const auto x = in[0].values<float>(), bias = in[5].values<float>();
    const auto expert = in[1].values<int64_t>();
    const auto table = in.size() > 6 ? in[6].values<float>() : std::vector<float>{};
    std::vector<double> scales;
    for (int64_t i = 0; i < experts * columns * blocks(); ++i)
      scales.push_back(scale_at(in[3], static_cast<size_t>(i)));
    const int bits = bit_width(in[2].dtype);
    std::vector<float> y;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t row = expert[static_cast<size_t>(r)] * columns + c;
        auto sum = static_cast<double>(bias[static_cast<size_t>(row)]);
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t bit = (row * depth + k) * bits;
          const unsigned code =
              static_cast<unsigned>(in[2].bytes[static_cast<size_t>(bit / 8)]) >> (bit % 8) &
              ((1U << bits) - 1);
          const double weight =
              table.empty() ? float_of(in[2].dtype, code) : static_cast<double>(table[code]);
          sum += weight * scales[static_cast<size_t>(row * blocks() + k / block)] *
                 static_cast<double>(x[static_cast<size_t>(r * depth + k)]);
        }
        y.push_back(static_cast<float>(sum));
      }
    return tensor<float>({rows, columns}, y);
  }
  // Of 4 bits, rows and blocks begin at whole bytes.
  bool taken(DType weights) const {
    return bit_width(weights) == 8 || (depth % 2 == 0 && (blocks() == 1 || block % 2 == 0));
  }
};

// Numbers of a row of weights differ by up to 2^31, so that large terms leave small results.
void expect_close(const Tensor& got, const Tensor& want) {
  double most = 0;
  for (const float v : want.values<float>()) most = std::max(most, std::fabs(static_cast<double>(v)));
  expect_near(got, want, 1e-5, 4e-6 * most);
}

// Experts with no rows, one, as many as are multiplied at a time, and more; panels of every width.
TEST(ExpertFloats, Sizes) {
  const ExpertCase cases[] = {
      {1, 1, 5, 6, 2},     {2, 8, 33, 64, 32},    {4, 3, 9, 50, 16},   {7, 2, 40, 34, 8}, {13, 4, 70, 96, 32},
      {4, 32, 17, 96, 16}, {40, 3, 100, 600, 64}, {5, 6, 3, 2, 2},     {0, 3, 4, 8, 4},   {3, 2, 0, 8, 4},
      {1, 2, 7, 333, 333}, {6, 2, 5, 51, 13},     {1, 3, 13, 4160, 32}};
  for (const ExpertCase& c : cases)
    for (const DType t : kFormats) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << ": " << c.rows << " rows, " << c.experts << " of "
                                      << c.columns << " x " << c.depth << " by " << c.block);
      const std::vector<Tensor> in = c.operands(t, DType::kFloat32);
      expect_close(
          run_op(ExpertFullyConnectedAttrs{.block_size = c.block}, in, c.taken(t) ? kTaken : kAny)[0],
          c.formula(in));
    }
}

TEST(ExpertFloats, Scales) {
  for (const DType t : kFormats)
    for (const DType scale : kScaleTypes)
      for (const ExpertCase& c : {ExpertCase{1, 2, 9, 320, 32}, {3, 4, 9, 320, 16}, {9, 2, 40, 320, 320}}) {
        SCOPED_TRACE(testing::Message() << dtype_name(t) << " " << dtype_name(scale) << " " << c.rows);
        const std::vector<Tensor> in = c.operands(t, scale);
        expect_close(run_op(ExpertFullyConnectedAttrs{.block_size = c.block}, in, kTaken)[0], c.formula(in));
      }
}

// Integers with scales of narrower types, as models in 16 bits have them.
TEST(ExpertFloats, ScalesOfIntegers) {
  for (const DType t : {DType::kInt4, DType::kUint8})
    for (const DType scale : kScaleTypes)
      for (const int64_t rows : {1, 9}) {
        SCOPED_TRACE(testing::Message() << dtype_name(t) << " " << dtype_name(scale) << " " << rows);
        std::vector<Tensor> in = ExpertCase{rows, 3, 9, 320, 32}.operands(DType::kFloat4E2M1, scale);
        in[2] = {t, {3, 9, 320}, noise<uint8_t>({3 * 9 * 320 * bit_width(t) / 8}, 0, 256, 2).bytes};
        run_op(ExpertFullyConnectedAttrs{.block_size = 32}, in, kTaken);
      }
}

// Numbers that are not finite, of weights, scales and tables, count in the rows of their expert alone.
TEST(ExpertFloats, NumbersThatAreNotFinite) {
  for (const DType t : kFormats)
    for (const int64_t rows : {2, 12}) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << ", " << rows << " rows");
      const ExpertCase c{rows, 3, 5, 64, 32};
      std::vector<Tensor> in = c.operands(t, DType::kFloat8E8M0);
      std::vector<int64_t> chosen(static_cast<size_t>(rows));
      for (size_t r = 0; r < chosen.size(); ++r) chosen[r] = r % 2 == 0 ? 2 : 0;
      in[1] = tensor<int64_t>({rows}, chosen);
      in[3].bytes[2 * 5 * 2 + 3 * 2 + 1] = std::byte{255};  // NaN: column 3 of expert 2
      in[3].bytes[1 * 5 * 2] = std::byte{255};              // of an expert without rows
      if (is_float8(t)) {
        unsigned nan = 0x7f;
        while (!std::isnan(float_of(t, nan))) ++nan;
        in[2].bytes[1 * 64 + 63] = static_cast<std::byte>(nan);  // column 1 of expert 0
      }
      const std::vector<float> y =
          run_op(ExpertFullyConnectedAttrs{.block_size = 32}, in, kTaken)[0].values<float>();
      for (size_t i = 0; i < y.size(); ++i) {
        const bool even = i / 5 % 2 == 0;
        EXPECT_EQ(std::isnan(y[i]), even ? i % 5 == 3 : is_float8(t) && i % 5 == 1) << i;
      }
    }
}

// Where x has another float type.
TEST(ExpertFloats, OtherTypesOfX) {
  for (const DType t : kFormats)
    for (const int64_t rows : {1, 9}) {
      std::vector<Tensor> in = ExpertCase{rows, 2, 9, 64, 32}.operands(t, DType::kFloat8E8M0);
      for (const DType x : kHalves) {
        std::vector<Tensor> half = in;
        half[0] = halved(in[0], x), half[5] = halved(in[5], x);
        run_op(ExpertFullyConnectedAttrs{.block_size = 32}, half,
               {.in_float64 = false, .taken_by = {"cuda-emulated"}});
      }
    }
}

}  // namespace
}  // namespace sinter::test
