// Calls that the simd backend leaves to the reference kernels, packed constants, and instruction sets.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "platforms/simd/simd_kernels.h"
#include "runtime/core/op_enums.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/instruction_sets.h"
#include "tests/op_harness/tolerance.h"

namespace sinter::test {
namespace {

template <class A>
bool simd_takes(const A& attrs, const std::vector<Tensor>& inputs) {
  return takes("simd", attrs, inputs);
}

TEST(SimdRefuses, FloatsOfRareForms) {
  const Tensor x = noise<float>({2, 5, 33}, -3, 3, 1);
  EXPECT_TRUE(simd_takes(PowAttrs{}, {x, tensor<float>({}, {2})}));
  EXPECT_FALSE(simd_takes(PowAttrs{}, {x, tensor<float>({}, {0.5f})}));
  EXPECT_FALSE(simd_takes(RopeAttrs{}, {full<float>({2, 4}, 1), full<float>({1}, 1), full<float>({2}, 1)}));
  EXPECT_FALSE(simd_takes(SoftmaxAttrs{.axis = 0}, {noise<float>({3, 5}, -1, 1, 3)}));
  EXPECT_FALSE(simd_takes(LayerNormAttrs{.axis = 1}, {full<float>({2, 3}, 1), full<float>({}, 1)}));
  EXPECT_FALSE(simd_takes(ReduceAttrs{.axes = {0, 2}}, {full<float>({2, 3, 4}, 1)}));
  EXPECT_FALSE(simd_takes(ReduceAttrs{.axes = {0}}, {full<int32_t>({2}, 1)}));
  EXPECT_FALSE(simd_takes(CompareAttrs{}, {full<uint64_t>({3}, 1), full<uint64_t>({3}, 1)}));
  ResizeAttrs resize{.mode = 1, .sizes = {4}, .scales = {2}};
  EXPECT_FALSE(simd_takes(resize, {full<double>({2}, 1)}));
  resize.coordinates = static_cast<int64_t>(ResizeCoordinates::kTfCropAndResize), resize.roi = {0, 1};
  EXPECT_FALSE(simd_takes(resize, {full<float>({2}, 1)}));
  EXPECT_FALSE(simd_takes(CopyAttrs{}, {Tensor{DType::kInt4, {4}, std::vector<std::byte>(2)}}));
}

TEST(SimdRefuses, IntegersOfRareForms) {
  EXPECT_FALSE(simd_takes(QSoftmaxAttrs{0}, {full<int8_t>({4, 3}, 1), full<uint32_t>({256}, 1)}));
  const Tensor x = full<float>({1, 6}, 1), w{DType::kInt4, {2, 6}, std::vector<std::byte>(6)};
  EXPECT_FALSE(simd_takes(LowBitFullyConnectedAttrs{.block_size = 3}, {x, w, full<float>({2, 2}, 1)}));
}

TEST(SimdRefuses, ExpertsOfRareForms) {
  const Tensor x = full<float>({1, 6}, 1), e = full<int64_t>({1}, 0), s = full<float>({3, 1, 2}, 1);
  const auto packed = [](DType t, const Shape& dims) { return Tensor{t, dims, std::vector<std::byte>(18)}; };
  const ExpertFullyConnectedAttrs a{.block_size = 3}, even{.block_size = 4};
  EXPECT_FALSE(simd_takes(a, {x, e, packed(DType::kInt4, {3, 1, 6}), s}));
  EXPECT_TRUE(simd_takes(even, {x, e, packed(DType::kInt4, {3, 1, 6}), s}));
  EXPECT_FALSE(simd_takes(even, {x, e, packed(DType::kInt2, {3, 1, 6}), s}));
  EXPECT_FALSE(simd_takes(a, {x, e, packed(DType::kFloat4E2M1, {3, 1, 6}), s}));
  EXPECT_TRUE(simd_takes(even, {x, e, packed(DType::kFloat4E2M1, {3, 1, 6}), s}));
  EXPECT_TRUE(simd_takes(ExpertFullyConnectedAttrs{}, {x, e, packed(DType::kFloat8E5M2, {3, 1, 6})}));
  EXPECT_FALSE(simd_takes(ExpertFullyConnectedAttrs{}, {x, e, packed(DType::kFloat4E2M1, {3, 1, 6})}));
  // The zero points of an expert begin within a byte here.
  const Tensor odd = full<float>({3, 1, 1}, 1);
  EXPECT_FALSE(simd_takes(ExpertFullyConnectedAttrs{.block_size = 6},
                          {x, e, packed(DType::kUint4, {3, 1, 6}), odd, packed(DType::kUint4, {3, 1, 1})}));
}

TEST(SimdRefuses, RecurrentLayersOfRareForms) {
  const std::vector<Tensor> operands = {full<float>({2, 1, 3}, 1), full<float>({1, 8, 3}, 1),
                                        full<float>({1, 8, 2}, 1)};
  const auto accepted = [&](auto change) {
    LstmAttrs a;
    a.hidden_size = 2;
    change(a);
    return simd_takes(a, operands);
  };
  EXPECT_TRUE(accepted([](LstmAttrs&) {}));
  EXPECT_TRUE(accepted([](LstmAttrs& a) { a.activations = {0, 1, 1}; }));
  EXPECT_FALSE(accepted([](LstmAttrs& a) { a.activations = {0, 1, 2}; }));
  EXPECT_FALSE(accepted([](LstmAttrs& a) { a.clip = 1; }));
  EXPECT_FALSE(accepted([](LstmAttrs& a) { a.input_forget = 1; }));
}

TEST(SimdRefuses, QuantizationOfRareTypes) {
  const auto quantize = [](DType to) {
    QuantizeAttrs a;
    a.to = static_cast<int64_t>(to);
    return a;
  };
  const Tensor x = noise<float>({4, 4}, -1, 1, 1), one = tensor<float>({}, {1}),
               wide_one = tensor<double>({}, {1});
  QuantizeAttrs blocks = quantize(DType::kInt8);
  blocks.block_size = 2;
  EXPECT_FALSE(simd_takes(blocks, {x, full<float>({2, 4}, 1)}));
  EXPECT_FALSE(simd_takes(quantize(DType::kInt4), {x, one}));
  EXPECT_FALSE(simd_takes(quantize(DType::kFloat8E4M3FN), {x, one}));
  EXPECT_FALSE(simd_takes(quantize(DType::kInt8), {x, wide_one}));
  EXPECT_FALSE(simd_takes(quantize(DType::kInt8), {noise<double>({4}, -1, 1, 1), one}));
  DequantizeAttrs dequantize;
  EXPECT_FALSE(simd_takes(dequantize, {full<int8_t>({4}, 1), wide_one}));
  EXPECT_FALSE(simd_takes(dequantize, {full<int32_t>({4}, 1), one, tensor<int32_t>({}, {1})}));
  dequantize.to = static_cast<int64_t>(DType::kFloat64);
  EXPECT_FALSE(simd_takes(dequantize, {full<int8_t>({4}, 1), one}));
}

// Returns whether the backend packs constants of the call: then the results are the bits of the kernel that
// reads them as they are, and a block of another size is refused.
template <class A>
bool packs(const A& attrs, const std::vector<Tensor>& inputs) {
  TestedBackend* simd = tested_backend("simd");
  StepNeeds needs;
  EXPECT_TRUE(measure_op(*simd, A::kOp, &attrs, inputs, {}, &needs).ok());
  EXPECT_EQ(needs.packed != 0, needs.packing.bytes > 0);
  if (needs.packing.bytes == 0) return false;
  std::vector<TensorView> in, out;
  EXPECT_TRUE(infer_op(attrs, inputs, &out).ok());
  for (const Tensor& t : inputs) {
    in.push_back(laid_out(t.dtype, t.dims, Layout::kDense));
    in.back().constant = in.size() > 1;
    in.back().data = const_cast<std::byte*>(t.bytes.data());
  }
  std::vector<std::byte> block(needs.packing.bytes - 1);
  EXPECT_EQ(run_on("simd", attrs, inputs, true)[0].bytes, run_on("simd", attrs, inputs, false)[0].bytes);
  EXPECT_EQ(simd->backend->pack({A::kOp, &attrs, in, out}, block, nullptr).code, Code::kInternal);
  return true;
}

TEST(SimdPacks, ConstantWeightsOfProducts) {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  const auto floats = [](const Shape& dims) { return noise<float>(dims, -1, 1, 1); };
  EXPECT_TRUE(packs(a, {floats({2, 9, 8, 5}), floats({37, 3, 3, 5}), floats({37})}));
  a.group = 2;
  EXPECT_TRUE(packs(a, {floats({1, 9, 8, 6}), floats({40, 3, 3, 3})}));
  a.pads = {0, 0, 0, 0}, a.group = 1;
  EXPECT_TRUE(packs(a, {floats({1, 9, 8, 6}), floats({40, 1, 1, 6})}));
  const FullyConnectedAttrs full;
  EXPECT_TRUE(packs(full, {floats({7, 70}), floats({40, 70}), floats({40})}));
  EXPECT_TRUE(packs(full, {floats({2, 70}), floats({40, 70})}));
  EXPECT_FALSE(packs(full, {floats({1, 70}), floats({40, 70})})) << "one row reads the weights as they are";
  EXPECT_FALSE(packs(AddAttrs{}, {floats({2, 70}), floats({70})}));
}

TEST(SimdPacks, NothingOfNarrowOrLargeWeights) {
  const FullyConnectedAttrs full;
  for (const int64_t rows : {1, 7, 40}) {
    const Tensor x = noise<float>({rows, 70}, -1, 1, 1), w = noise<float>({40, 70}, -1, 1, 2);
    for (const DType type : kHalves) EXPECT_FALSE(packs(full, {x, halved(w, type)}));
  }
  EXPECT_FALSE(packs(full, {noise<float>({20, 4096}, -1, 1), noise<float>({1025, 4096}, -1, 1)}));
}

// NEON of 32-bit ARM takes denormal numbers for 0.
#ifdef __arm__
constexpr bool kFlushes = true;
#else
constexpr bool kFlushes = false;
#endif
bool is_product_with_one(double number, double result) {
  if (std::isnan(number)) return std::isnan(result);
  return result == number || (kFlushes && std::abs(number) < 0x1p-126 && result == 0);
}

// Every number of a type is alone in its column, for the kernel for few rows and the one for many.
TEST(SimdNarrowWeights, EveryNumberIsExact) {
  const InstructionSets& sets = *InstructionSets::of("simd");
  for (const DType type : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN, DType::kFloat8E4M3FNUZ,
                           DType::kFloat8E5M2, DType::kFloat8E5M2FNUZ}) {
    const int64_t codes = byte_width(type) == 1 ? 0x100 : 0x10000;
    Tensor w{type, {codes, 1}, std::vector<std::byte>(static_cast<size_t>(codes) * byte_width(type))};
    for (int64_t code = 0; code < codes; ++code)
      std::memcpy(w.bytes.data() + static_cast<size_t>(code) * byte_width(type), &code, byte_width(type));
    const std::vector<double> want = widened(w).values<double>();
    for (const int64_t rows : {1, 33})
      for (const char* name : sets.names()) {
        ASSERT_TRUE(sets.limit(name));
        const auto got =
            run_on("simd", FullyConnectedAttrs{}, {full<float>({rows, 1}, 1), w})[0].values<float>();
        for (size_t i = 0; i < got.size(); ++i) {
          const double number = want[i % want.size()], result = static_cast<double>(got[i]);
          ASSERT_TRUE(is_product_with_one(number, result))
              << dtype_name(type) << " " << i % want.size() << " is " << result << " and not " << number
              << " on " << name << ", " << rows << " rows";
        }
      }
  }
  sets.limit(nullptr);
}

TEST(SimdPacks, ConstantWeightsOfLstm) {
  LstmAttrs a;
  a.hidden_size = 20;
  std::vector<Tensor> in = {noise<float>({3, 2, 7}, -1, 1, 1), noise<float>({1, 80, 7}, -1, 1, 2),
                            noise<float>({1, 80, 20}, -1, 1, 3)};
  const auto packed = [&] {
    TestedBackend* simd = tested_backend("simd");
    StepNeeds needs;
    EXPECT_TRUE(measure_op(*simd, Op::kLstm, &a, in, {}, &needs).ok());
    return needs.packed;
  };
  EXPECT_EQ(packed(), 0b110u);
  in.push_back(noise<float>({1, 160}, -1, 1, 4));
  EXPECT_EQ(packed(), 0b1110u);
}

TEST(SimdPacks, ConstantWeightsOfIntegerProducts) {
  const auto product = [](const Shape& x, const Shape& w, int64_t columns) {
    return std::vector<Tensor>{full<int8_t>(x, 1), full<int8_t>(w, 2), full<int32_t>({columns}, 3),
                               full<float>({columns}, 0.01f)};
  };
  QConvAttrs conv{};
  QDepthwiseConvAttrs depthwise{};
  conv.strides = depthwise.strides = conv.dilations = depthwise.dilations = {1, 1};
  conv.pads = depthwise.pads = {0, 0, 0, 0};
  EXPECT_TRUE(packs(conv, product({1, 9, 8, 6}, {40, 3, 3, 6}, 40)));
  EXPECT_TRUE(packs(depthwise, product({1, 9, 8, 6}, {3, 3, 6}, 6)));
  for (const int64_t rows : {1, 9})
    EXPECT_TRUE(packs(QFullyConnectedAttrs{}, product({rows, 65}, {17, 65}, 17)));
}

// Long sums are added up in pieces of at most 512 terms: after k terms of such a piece the sum is about
// sqrt(k) / 3 and rounds by 2^-24 of that at most, and the errors of the pieces are independent. The bound is
// five standard deviations.
TEST(SimdSums, AreAddedInPieces) {
  const InstructionSets& sets = *InstructionSets::of("simd");
  for (const int64_t n : {700, 2500, 9000}) {
    const Tensor x = noise<float>({9, n}, -1, 1, 1), w = noise<float>({40, n}, -1, 1, 2);
    const double bound = 5 * 0x1p-24 * 512 / std::sqrt(54.0) * std::sqrt(static_cast<double>(n / 512 + 1));
    for (const char* name : sets.names()) {
      ASSERT_TRUE(sets.limit(name));
      const std::vector<float> got = run_on("simd", FullyConnectedAttrs{}, {x, w})[0].values<float>();
      const auto a = x.values<float>(), b = w.values<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        double sum = 0;
        for (size_t k = 0; k < static_cast<size_t>(n); ++k)
          sum += static_cast<double>(a[i / 40 * static_cast<size_t>(n) + k]) *
                 static_cast<double>(b[i % 40 * static_cast<size_t>(n) + k]);
        ASSERT_NEAR(static_cast<double>(got[i]), sum, bound + 1e-6 * std::fabs(sum) + 3e-7)
            << name << ", element " << i;
      }
    }
  }
  sets.limit(nullptr);
}

// The ratio of the root mean squares of errors against float64, by Winograd's algorithm and by direct sums,
// on every instruction set. Tiles of 4x4 stay within the converter's limit (docs/numerics.md).
TEST(SimdWinograd, ErrorsOfEachTile) {
  const InstructionSets& sets = *InstructionSets::of("simd");
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  const Shape image = {1, 13, 14, 64}, filters = {48, 3, 3, 64};
  const Tensor x = noise<float>(image, -1, 1, 1), w = noise<float>(filters, -1, 1, 2);
  std::vector<TensorView> shapes;
  std::vector<Tensor> exact;
  const std::vector<Tensor> wide = {widened(x), widened(w)};
  ASSERT_TRUE(infer_op(a, wide, &shapes).ok());
  ASSERT_TRUE(run_once(a, wide, shapes, Layout::kDense, Layout::kDense, -1, &exact).ok());
  const auto want = exact[0].values<double>();
  const auto error = [&](int64_t tile) {
    a.winograd = tile;
    const auto got = run_on("simd", a, {x, w}, true)[0].values<float>();
    double sum = 0;
    for (size_t i = 0; i < want.size(); ++i) sum += std::pow(static_cast<double>(got[i]) - want[i], 2);
    return std::sqrt(sum / static_cast<double>(want.size()));
  };
  for (const char* name : sets.names()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(sets.limit(name));
    const double direct = error(0);
    EXPECT_LT(error(2), 2 * direct);
    EXPECT_LT(error(4), 4 * direct);
    EXPECT_LT(error(6), 20 * direct);
  }
  sets.limit(nullptr);
}

TEST(SimdInstructionSets, AreNamed) {
  const std::vector<const char*> names = InstructionSets::of("simd")->names();
  EXPECT_FALSE(set_simd_cap("sse9"));
  ASSERT_FALSE(names.empty());
  for (const char* name : names) {
    ASSERT_TRUE(set_simd_cap(name));
    EXPECT_STREQ(simd_target(), name);
  }
  EXPECT_TRUE(set_simd_cap(nullptr));
  EXPECT_STREQ(simd_target(), names.back());
}

}  // namespace
}  // namespace sinter::test
