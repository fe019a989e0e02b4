// MatMul and FullyConnected against the formula.
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
}

}  // namespace
}  // namespace sinter::test
