// MatMul and FullyConnected against the formula.
#include "runtime/core/bit_rows.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

// a [m, k], b [k, n].
template <class T, class Acc>
std::vector<T> naive(const std::vector<T>& a, const std::vector<T>& b, size_t m, size_t k, size_t n) {
  std::vector<T> y;
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      Acc sum = 0;
      for (size_t l = 0; l < k; ++l) sum += static_cast<Acc>(a[i * k + l]) * static_cast<Acc>(b[l * n + j]);
      y.push_back(static_cast<T>(sum));
    }
  return y;
}
template <class T>
std::vector<T> transposed(const std::vector<T>& a, size_t rows, size_t columns) {
  std::vector<T> t;
  for (size_t j = 0; j < columns; ++j)
    for (size_t i = 0; i < rows; ++i) t.push_back(a[i * columns + j]);
  return t;
}

template <class T>
void compare(const Tensor& y, const Tensor& want) {
  if constexpr (std::is_floating_point_v<T>)
    expect_near(y, want, sizeof(T) == 8 ? 1e-13 : 1.2e-7, sizeof(T) == 8 ? 1e-13 : 1e-12);
  else
    expect_equal(y, want);
}

template <class T, class Acc>
void check_sizes(double range) {
  const size_t sizes[][3] = {{1, 1, 1},   {3, 5, 7},    {4, 4, 4},     {1, 700, 9},   {9, 3, 1},  {70, 13, 6},
                             {5, 513, 5}, {2, 1025, 3}, {130, 65, 33}, {6, 20000, 2}, {1, 2, 300}};
  for (const auto& [m, k, n] : sizes) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    const auto im = static_cast<int64_t>(m), ik = static_cast<int64_t>(k), in = static_cast<int64_t>(n);
    const Tensor a = noise<T>({im, ik}, -range, range, 1), b = noise<T>({ik, in}, -range, range, 2);
    const Tensor want = tensor<T>({im, in}, naive<T, Acc>(a.values<T>(), b.values<T>(), m, k, n));
    const Tensor at = tensor<T>({ik, im}, transposed(a.values<T>(), m, k));
    const Tensor bt = tensor<T>({in, ik}, transposed(b.values<T>(), k, n));
    compare<T>(run_op(MatMulAttrs{}, {a, b})[0], want);
    compare<T>(run_op(MatMulAttrs{.transpose_a = 1}, {at, b})[0], want);
    compare<T>(run_op(MatMulAttrs{.transpose_b = 1}, {a, bt})[0], want);
    compare<T>(run_op(MatMulAttrs{.transpose_a = 1, .transpose_b = 1}, {at, bt})[0], want);
    compare<T>(run_op(FullyConnectedAttrs{}, {a, bt})[0], want);
  }
}

TEST(MatMul, AgreesWithTheFormula) {
  check_sizes<float, double>(1);
  check_sizes<double, double>(1);
  check_sizes<int32_t, uint32_t>(2e9);
  check_sizes<int64_t, uint64_t>(9e18);
  check_sizes<uint32_t, uint32_t>(2e9);
}

TEST(MatMul, BroadcastsTheBatch) {
  // a [2, 1, 1, 2], b [3, 2, 1]: y[i, j] = a[i] . b[j].
  const Tensor a = tensor<float>({2, 1, 1, 2}, {1, 2, 3, 4}),
               b = tensor<float>({3, 2, 1}, {1, 0, 0, 1, 1, 1});
  expect_equal(run_op(MatMulAttrs{}, {a, b})[0], tensor<float>({2, 3, 1, 1}, {1, 2, 3, 3, 4, 7}));
  expect_equal(run_op(MatMulAttrs{}, {tensor<float>({1, 2}, {1, 1}), b})[0],
               tensor<float>({3, 1, 1}, {1, 1, 2}));
  expect_equal(run_op(MatMulAttrs{}, {full<float>({0, 1, 2}, 1), full<float>({1, 2, 1}, 1)})[0],
               full<float>({0, 1, 1}, 0));
}

TEST(MatMul, NothingToSumGivesZeros) {
  expect_equal(run_op(MatMulAttrs{}, {full<float>({2, 0}, 1), full<float>({0, 3}, 1)})[0],
               full<float>({2, 3}, 0));
  expect_equal(run_op(FullyConnectedAttrs{},
                      {full<int32_t>({2, 0}, 1), full<int32_t>({2, 0}, 1), tensor<int32_t>({2}, {7, 8})})[0],
               tensor<int32_t>({2, 2}, {7, 8, 7, 8}));
}

TEST(MatMul, BFloat16IsInferred) {
  std::vector<TensorView> out;
  const Tensor a = bits_tensor<uint16_t>(DType::kBFloat16, {1, 1}, {0x3f80});
  EXPECT_TRUE(infer_op(MatMulAttrs{}, {a, a}, &out).ok());
  EXPECT_EQ(out[0].dtype, DType::kBFloat16);
}

TEST(MatMul, Refuses) {
  const Tensor a = full<float>({2, 3}, 1);
  expect_refused(MatMulAttrs{}, {a, a});
  expect_refused(MatMulAttrs{.transpose_a = 2}, {a, full<float>({3, 1}, 1)});
  expect_refused(MatMulAttrs{}, {a, full<float>({3}, 1)});
  expect_refused(MatMulAttrs{}, {a, full<double>({3, 1}, 1)});
  expect_refused(MatMulAttrs{}, {full<float>({2, 2, 3}, 1), full<float>({3, 3, 1}, 1)});
  expect_refused(MatMulAttrs{}, {full<uint8_t>({2, 3}, 1), full<uint8_t>({3, 1}, 1)});
}

TEST(FullyConnected, LeadingAxesBiasAndClamp) {
  const Tensor x = tensor<float>({2, 1, 2}, {1, 2, -3, 4}), w = tensor<float>({3, 2}, {1, 0, 0, 1, 1, 1});
  const Tensor b = tensor<float>({3}, {10, 20, 30});
  expect_equal(run_op(FullyConnectedAttrs{.act_min = 10, .act_max = 32}, {x, w, b})[0],
               tensor<float>({2, 1, 3}, {11, 22, 32, 10, 24, 31}));
  expect_equal(run_op(FullyConnectedAttrs{}, {tensor<float>({2}, {1, 2}), w})[0],
               tensor<float>({3}, {1, 2, 3}));
}

TEST(FullyConnected, Refuses) {
  const Tensor x = full<float>({2, 3}, 1), w = full<float>({4, 3}, 1);
  expect_refused(FullyConnectedAttrs{}, {x, full<float>({3, 4}, 1)});
  expect_refused(FullyConnectedAttrs{}, {x, w, full<float>({3}, 1)});
  expect_refused(FullyConnectedAttrs{}, {x, w, full<double>({4}, 1)});
  expect_refused(FullyConnectedAttrs{}, {full<float>({}, 1), w});
  expect_refused(FullyConnectedAttrs{.act_min = 1, .act_max = 0}, {x, w});
}

// ---- LowBitFullyConnected

TEST(LowBitFullyConnected, EveryTypeOfWeightsAndZeroPoints) {
  // Two rows of three weights in blocks of two: 1 2 | 3 and 12 13 | 14, low nibble first.
  const Tensor x = tensor<float>({1, 3}, {1, 10, 100});
  const Tensor u4 = bits_tensor<uint8_t>(DType::kUint8, {3}, {0x21, 0xc3, 0xed});
  const Tensor s = tensor<float>({2, 2}, {1, 0.5, 2, -1});
  Tensor w{DType::kUint4, {2, 3}, u4.bytes},
      zeros{DType::kUint4, {2, 2}, bits_tensor<uint8_t>(DType::kUint8, {2}, {0x31, 0x0c}).bytes};
  const LowBitFullyConnectedAttrs a{.block_size = 2};
  expect_equal(run_op(a, {x, w, s})[0], tensor<float>({1, 2}, {21 + 150, 2 * 142 - 1400}));
  expect_equal(run_op(a, {x, w, s, zeros})[0], tensor<float>({1, 2}, {10, 20 - 1400}));
  expect_equal(
      run_op(a, {x, w, s, tensor<float>({2, 2}, {0.5, 3, 12, 14}), tensor<float>({2}, {1000, 0.5})})[0],
      tensor<float>({1, 2}, {15.5f + 1000, 20.5f}));
  w.dtype = zeros.dtype = DType::kInt4;  // the second row is -4 -3 | -2, its zero points -4 and 0
  expect_equal(run_op(a, {x, w, s, zeros})[0], tensor<float>({1, 2}, {10, 20 + 200}));
  const LowBitFullyConnectedAttrs clamped{.block_size = 2, .act_min = 0, .act_max = 30};
  expect_equal(
      run_op(clamped, {x, tensor<int8_t>({2, 3}, {1, -128, 3, 1, 1, 1}), s, {}, full<float>({2}, 1)})[0],
      tensor<float>({1, 2}, {0, 0}));
  expect_equal(run_op(a, {x, tensor<uint8_t>({2, 3}, {1, 255, 3, 1, 1, 1}), s,
                          tensor<uint8_t>({2, 2}, {0, 3, 1, 0})})[0],
               tensor<float>({1, 2}, {2551, -100}));
  expect_equal(run_op(a, {full<double>({2, 1, 3}, 1), tensor<int8_t>({2, 3}, {1, 2, 3, 4, 5, 6}),
                          full<double>({2, 2}, 0.5)})[0],
               tensor<double>({2, 1, 2}, {3, 7.5, 3, 7.5}));
}

TEST(LowBitFullyConnected, PlanesOfBits) {
  // 0 to 7 in 3 bits: a plane of the low two bits, then one of the high bit.
  const Tensor w{DType::kUint8, {1, 3}, bits_tensor<uint8_t>(DType::kUint8, {3}, {0xe4, 0xe4, 0xf0}).bytes};
  const Tensor x = tensor<float>({1, 8}, {1, 10, 100, 1000, 1, 10, 100, 1000}), s = full<float>({1, 1}, 0.5);
  expect_equal(run_op(LowBitFullyConnectedAttrs{.block_size = 8, .bits = 3}, {x, w, s})[0],
               tensor<float>({1, 1}, {(3210 + 7654) / 2.0f}));
  expect_equal(run_op(LowBitFullyConnectedAttrs{.block_size = 8, .bits = 3},
                      {x, w, s, tensor<uint8_t>({1, 1}, {4})})[0],
               tensor<float>({1, 1}, {(3210 + 7654 - 4 * 2222) / 2.0f}));
  for (const int bits : {2, 3, 4, 5, 6, 7, 8}) {
    std::vector<uint8_t> row(static_cast<size_t>(bit_row_bytes(bits, 77)));
    for (int64_t k = 0; k < 77; ++k)
      set_bit_row_item(row.data(), bits, 77, k, static_cast<uint8_t>(k * 5 % (1 << bits)));
    for (int64_t k = 0; k < 77; ++k)
      EXPECT_EQ(bit_row_item(row.data(), bits, 77, k), k * 5 % (1 << bits)) << bits << " bits";
  }
}

TEST(LowBitFullyConnected, RoundsBlocksOfActivations) {
  // The block's scale is 127 / 127, and that of the second one 0.5; 2.5 and -0.25 become 2 and 0 (half to
  // even).
  const Tensor x = tensor<float>({1, 4}, {127, 2.5, 63.5, -0.25}), w = tensor<int8_t>({1, 4}, {1, 3, 5, 7});
  const LowBitFullyConnectedAttrs a{.block_size = 2, .activation_bits = 8};
  expect_equal(run_op(a, {x, w, tensor<float>({1, 2}, {1, 2})})[0],
               tensor<float>({1, 1}, {127 + 2 * 3 + 127 * 5 * 0.5f * 2}));
  // A block of zeros has a scale of 0.
  expect_equal(run_op(a, {full<float>({1, 4}, 0), w, full<float>({1, 2}, 1)})[0], full<float>({1, 1}, 0));
}

TEST(LowBitFullyConnected, Floats) {
  // 0.5 1 | 6 -6 in float4e2m1 with a scale in float8e8m0 or float8e4m3fn: 2 and 0.5.
  const Tensor x = tensor<float>({1, 4}, {1, 10, 100, 1000});
  const Tensor w{DType::kFloat4E2M1, {1, 4}, bits_tensor<uint8_t>(DType::kUint8, {2}, {0x21, 0xf7}).bytes};
  const LowBitFullyConnectedAttrs a{.block_size = 2};
  for (const bool power : {false, true}) {
    const Tensor s{power ? DType::kFloat8E8M0 : DType::kFloat8E4M3FN,
                   {1, 2},
                   tensor<uint8_t>({2}, power ? std::initializer_list<uint8_t>{128, 126}
                                              : std::initializer_list<uint8_t>{0x40, 0x30})
                       .bytes};
    expect_equal(run_op(a, {x, w, s})[0], tensor<float>({1, 1}, {2 * 10.5f + 0.5f * (600 - 6000)}));
  }
  const Tensor eight{DType::kFloat8E5M2, {1, 4}, tensor<uint8_t>({4}, {0x3c, 0x40, 0xbc, 0}).bytes};
  // Weights of float64 do not exist.
  expect_equal(run_op(a, {x, eight, full<float>({1, 2}, 2)}, {.in_float64 = false})[0],
               tensor<float>({1, 1}, {2 * (1 + 20 - 100)}));
}

TEST(LowBitFullyConnected, Refuses) {
  const Tensor x = full<float>({2, 5}, 1), w = full<uint8_t>({4, 5}, 1), s = full<float>({4, 3}, 1);
  const LowBitFullyConnectedAttrs a{.block_size = 2};
  std::vector<TensorView> out;
  EXPECT_TRUE(infer_op(a, {x, w, s}, &out).ok());
  expect_refused(a, {full<int32_t>({2, 5}, 1), w, s});
  expect_refused(a, {x, full<float>({4, 5}, 1), s});
  expect_refused(a, {x, full<uint8_t>({4, 6}, 1), s});
  expect_refused(a, {x, w, full<float>({4, 2}, 1)});
  expect_refused(a, {x, w, full<double>({4, 3}, 1)});
  expect_refused(a, {x, w, s, full<int8_t>({4, 3}, 1)});
  expect_refused(a, {x, w, s, full<uint8_t>({4, 1}, 1)});
  expect_refused(a, {x, full<int8_t>({4, 5}, 1), s, full<float>({4, 3}, 1)});
  expect_refused(a, {x, w, s, {}, full<float>({5}, 1)});
  expect_refused(LowBitFullyConnectedAttrs{.block_size = 0}, {x, w, s});
  expect_refused(LowBitFullyConnectedAttrs{.block_size = 2, .act_min = 1, .act_max = 0}, {x, w, s});
  // Widths with an element type, or none; rows of other lengths; other activations.
  const Tensor rows = full<uint8_t>({4, 3}, 1);
  EXPECT_TRUE(infer_op(LowBitFullyConnectedAttrs{.block_size = 2, .bits = 3}, {x, rows, s}, &out).ok());
  for (const int64_t bits : {-1, 1, 2, 4, 5, 8, 9})
    expect_refused(LowBitFullyConnectedAttrs{.block_size = 2, .bits = bits}, {x, rows, s});
  expect_refused(LowBitFullyConnectedAttrs{.block_size = 2, .bits = 3}, {x, full<int8_t>({4, 3}, 1), s});
  expect_refused(LowBitFullyConnectedAttrs{.block_size = 2, .activation_bits = 4}, {x, w, s});
  // Floats have no zero points and no products of integers; scales of float4e2m1 and wider ones.
  const Tensor floats{DType::kFloat8E5M2, {4, 5}, full<uint8_t>({4, 5}, 1).bytes};
  EXPECT_TRUE(infer_op(a, {x, floats, s}, &out).ok());
  expect_refused(a, {x, floats, s, s});
  expect_refused(LowBitFullyConnectedAttrs{.block_size = 2, .activation_bits = 8}, {x, floats, s});
  expect_refused(a, {x, w, Tensor{DType::kFloat4E2M1, {4, 3}, full<uint8_t>({6}, 1).bytes}});
}

}  // namespace
}  // namespace sinter::test
