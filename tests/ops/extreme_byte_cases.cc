// Integer products of few rows and many, of the bytes with the largest products: sums of two of them leave
// int16 where numbers are shifted to 0 to 255, and weights of -128 have no opposite.
#include "runtime/core/op_enums.h"
#include "tests/op_harness/op_test.h"
#include "tests/ops/quantized_test.h"

namespace sinter::test {
namespace {

// Of -128, -127, 0 and 127; without -128 where `narrow`.
Tensor extremes(const Shape& dims, bool narrow, uint64_t seed) {
  constexpr int8_t kBytes[] = {127, -127, 0, -128};
  std::vector<int8_t> bytes;
  for (const int8_t i : noise<int8_t>(dims, 0, narrow ? 3 : 4, seed).values<int8_t>())
    bytes.push_back(kBytes[i]);
  return tensor<int8_t>(dims, bytes);
}

void check(int64_t rows, int64_t depth, int64_t columns, int wide) {
  QFullyConnectedAttrs a{.x_zero = -128};
  quantized::Operands o =
      quantized::operands<int8_t>({rows, depth}, {columns, depth}, columns, 16000.0 * 8, 1);
  o.x = extremes({rows, depth}, false, 2);
  o.weights = extremes({columns, depth}, wide < 2, 3);
  // In a panel of its own.
  if (wide == 1) o.weights.bytes.back() = std::byte{0x80};
  a.wide_weights = wide > 0;
  for (const DType to : {DType::kFloat32, DType::kInt8}) {
    a.to = static_cast<int64_t>(to);
    check_taken_by("simd", a, o.tensors());
  }
}

TEST(ExtremeBytes, FullyConnected) {
  for (const int64_t rows : {1, 2, 3, 4, 7, 8, 15, 16, 17})
    for (const int64_t depth : {1, 4, 6, 64, 131})
      for (const int64_t columns : {3, 16, 70})
        for (int wide = 0; wide < 3; ++wide) {
          SCOPED_TRACE(testing::Message()
                       << rows << " rows of " << depth << " by " << columns << ", weights of -128: " << wide);
          check(rows, depth, columns, wide);
        }
}

// Windows of few pixels, the edges of which are padded with the zero point.
TEST(ExtremeBytes, Conv) {
  for (const int64_t size : {1, 2, 3, 4})
    for (int wide = 0; wide < 2; ++wide) {
      SCOPED_TRACE(testing::Message() << size << " pixels, weights of -128: " << wide);
      QConvAttrs a{.x_zero = -128, .to = static_cast<int64_t>(DType::kFloat32)};
      a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1}, a.group = 1;
      quantized::Operands o =
          quantized::operands<int8_t>({1, size, size, 6}, {40, 3, 3, 6}, 40, 16000.0 * 8, 1);
      o.x = extremes({1, size, size, 6}, false, 2), o.weights = extremes({40, 3, 3, 6}, wide == 0, 3);
      a.wide_weights = wide;
      check_taken_by("simd", a, o.tensors());
    }
}

}  // namespace
}  // namespace sinter::test
