// Reference kernels on float16 and bfloat16: the float32 (sums: float64) result of the same numbers, rounded
// once. Other backends that take the calls are compared with them.
#include "runtime/core/op_enums.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/op_test.h"
#include "tests/op_harness/tolerance.h"
#include "tests/ops/random_half.h"

namespace sinter::test {
namespace {

// W: the type in which the same kernel computes what is then rounded.
template <class W, class A>
void expect_rounded_once(const A& attrs, const std::vector<Tensor>& halves) {
  std::vector<Tensor> wide;
  for (const Tensor& t : halves) wide.push_back(unhalved<W>(t));
  const DType type = halves[0].dtype;
  const Tensor got = run_op(attrs, halves)[0], want = halved(run_op(attrs, wide)[0], type);
  ASSERT_EQ(got.dtype, type) << op_name(A::kOp);
  EXPECT_EQ(got.bytes, want.bytes) << op_name(A::kOp);
}

// Of both types.
class Half : public testing::TestWithParam<DType> {
 protected:
  Tensor values(Shape dims, uint64_t seed = 1, double low = -2, double high = 2) const {
    return halved(noise<float>(std::move(dims), low, high, seed), GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Both, Half, testing::ValuesIn(kHalves),
                         [](const auto& info) { return dtype_name(info.param); });

TEST_P(Half, FunctionsOfNumbersOfEverySize) {
  const Tensor x = finite_halves(7, GetParam());
  expect_rounded_once<float>(AbsAttrs{}, {x});
  expect_rounded_once<float>(NegAttrs{}, {x});
  expect_rounded_once<float>(SqrtAttrs{}, {x});
  expect_rounded_once<float>(SigmoidAttrs{}, {x});
  expect_rounded_once<float>(TanhAttrs{}, {x});
  expect_rounded_once<float>(HardSwishAttrs{}, {values({300}, 1, -9, 9)});  // six times x is a float32, too
  expect_rounded_once<float>(HardSigmoidAttrs{}, {x});
  expect_rounded_once<float>(LeakyReluAttrs{.alpha = 0.1}, {x});
  expect_rounded_once<float>(SiluAttrs{}, {x});
  expect_rounded_once<float>(GeluAttrs{}, {x});
  expect_rounded_once<float>(ClampAttrs{.min = -1, .max = 6}, {x});
}

TEST_P(Half, ArithmeticIsCorrectlyRounded) {
  const Tensor a = values({3, 1, 40}, 1, -200, 200), b = values({2, 40}, 2);
  expect_rounded_once<double>(AddAttrs{}, {a, b});
  expect_rounded_once<double>(SubAttrs{}, {a, b});
  expect_rounded_once<double>(MulAttrs{.act_min = -50, .act_max = 50}, {a, b});
  expect_rounded_once<double>(DivAttrs{}, {a, b});
  expect_rounded_once<double>(MinAttrs{}, {a, b});
  expect_rounded_once<double>(MaxAttrs{}, {a, b});
  expect_rounded_once<double>(PReluAttrs{}, {a, values({40}, 3)});
}

TEST(Float16, BeyondTheRangeIsInfinityAndNanStaysNan) {
  const auto halves = [](std::initializer_list<uint16_t> bits) {
    return bits_tensor<uint16_t>(DType::kFloat16, {static_cast<int64_t>(bits.size())}, bits);
  };
  const Tensor x = halves({0x7bff, 0xfbff, 0x7e00, 0x7c00});
  EXPECT_EQ(run_op(AddAttrs{}, {x, x})[0].bytes, halves({0x7c00, 0xfc00, 0x7e00, 0x7c00}).bytes);
  EXPECT_EQ(run_op(ClampAttrs{.min = 0, .max = 6}, {x})[0].bytes,
            halves({0x4600, 0x0000, 0x7e00, 0x4600}).bytes);
}

TEST_P(Half, SumsAreWideAndRoundedOnce) {
  ConvAttrs conv;
  conv.strides = {2, 1}, conv.dilations = {1, 1}, conv.pads = {1, 1, 1, 1}, conv.group = 2;
  conv.act_min = 0;
  expect_rounded_once<double>(conv, {values({2, 5, 6, 8}), values({6, 3, 3, 4}, 2), values({6}, 3)});
  DepthwiseConvAttrs depthwise;
  depthwise.strides = {1, 1}, depthwise.dilations = {1, 1}, depthwise.pads = {1, 1, 1, 1};
  expect_rounded_once<double>(depthwise, {values({1, 5, 6, 40}), values({3, 3, 40}, 2), values({40}, 3)});
  ConvTransposeAttrs transposed;
  transposed.strides = {2, 2}, transposed.dilations = {1, 1}, transposed.pads = {0, 0, 0, 0},
  transposed.output_padding = {0, 0};
  expect_rounded_once<double>(transposed, {values({1, 3, 4, 5}), values({7, 2, 2, 5}, 2)});
  expect_rounded_once<double>(FullyConnectedAttrs{.act_max = 6},
                              {values({3, 70}), values({9, 70}, 2), values({9}, 3)});
  expect_rounded_once<double>(MatMulAttrs{.transpose_b = 1}, {values({2, 3, 70}), values({9, 70}, 2)});
  expect_rounded_once<double>(AvgPoolAttrs{.kernel = {3, 2}, .pads = {1, 0, 1, 0}}, {values({1, 5, 6, 70})});
  // 4096 ones, which a float16 sum would stop counting at 2048, and one of bfloat16 at 256.
  const Tensor ones = halved(full<float>({1, 4096}, 1), GetParam());
  EXPECT_EQ(run_op(FullyConnectedAttrs{}, {ones, ones}, {.backends = false})[0].bytes,
            halved(full<float>({1, 1}, 4096), GetParam()).bytes);
}

TEST_P(Half, WeightsOfFewBits) {
  // Rows, columns, depth, block.
  const int64_t sizes[][4] = {
      {1, 37, 96, 32}, {3, 20, 64, 64}, {70, 72, 160, 32}, {9, 65, 100, 1000}, {66, 8, 64, 16}};
  for (const auto& [m, n, k, block] : sizes) {
    const int64_t blocks = (k + block - 1) / block;
    const Tensor x = values({m, k}, 1, -1, 1), s = values({n, blocks}, 2, 0.05, 0.1), bias = values({n}, 3);
    const LowBitFullyConnectedAttrs a{.block_size = block, .act_min = -9};
    for (const DType t : {DType::kUint4, DType::kInt4, DType::kUint8, DType::kInt8}) {
      SCOPED_TRACE(testing::Message()
                   << m << " x " << n << " x " << k << " by " << block << " " << dtype_name(t));
      const bool narrow = t == DType::kUint4 || t == DType::kInt4;
      const auto packed = [&](const Shape& dims, uint64_t seed) {
        const int64_t count = dims[0] * dims[1];
        return Tensor{t, dims, noise<uint8_t>({narrow ? (count + 1) / 2 : count}, 0, 256, seed).bytes};
      };
      const Tensor w = packed({n, k}, 4);
      run_op(a, {x, w, s});
      run_op(a, {x, w, s, packed({n, blocks}, 5), bias});
      if (t == DType::kUint4) run_op(a, {x, w, s, values({n, blocks}, 6, 0, 9)});
    }
  }
}

TEST_P(Half, PoolingAndResizing) {
  expect_rounded_once<float>(MaxPoolAttrs{.kernel = {2, 3}, .pads = {0, 1, 1, 1}}, {values({2, 5, 6, 70})});
  ResizeAttrs resize;
  resize.mode = static_cast<int64_t>(ResizeMode::kLinear);
  resize.sizes = {1, 7, 9, 5}, resize.scales = {1, 7.0 / 3, 9.0 / 4, 1};
  expect_rounded_once<double>(resize, {values({1, 3, 4, 5})});
}

// Operations that the reference kernels compute in wider types only: backends that take them are compared
// with float64.
template <class A>
void compare_with_float64(const A& attrs, const std::vector<Tensor>& halves) {
  std::vector<Tensor> wide;
  for (const Tensor& t : halves) wide.push_back(unhalved<double>(t));
  const Tensor want = run_op(attrs, wide, {.backends = false})[0];
  for (const TestedBackend& backend : tested_backends()) {
    if (!takes(backend.name(), attrs, halves)) continue;
    SCOPED_TRACE(std::string(op_name(A::kOp)) + " on " + std::string(backend.name()));
    const Tensor got = run_on(backend.name(), attrs, halves)[0];
    expect_within(got, want, tolerance_of(A::kOp, &attrs, halves, got.dtype, halved(want, halves[0].dtype)));
  }
}

TEST_P(Half, ReductionsAndNormalisations) {
  const Tensor x = values({3, 5, 70});
  for (int64_t fn = 0; fn < 8; ++fn)
    for (const int64_t axis : {1, 2}) compare_with_float64(ReduceAttrs{.fn = fn, .axes = {axis}}, {x});
  for (const int64_t axis : {1, 2}) {
    compare_with_float64(ArgReduceAttrs{.axis = axis}, {x});
    compare_with_float64(CumulateAttrs{.axis = axis}, {x});
    compare_with_float64(SoftmaxAttrs{.axis = axis}, {x});
    compare_with_float64(SoftmaxAttrs{.axis = axis, .log = 1}, {x});
  }
  compare_with_float64(LayerNormAttrs{.axis = 2}, {x, values({70}, 2), values({70}, 3)});
  compare_with_float64(RmsNormAttrs{.axis = 1}, {x, values({70}, 2)});
  compare_with_float64(GroupNormAttrs{.groups = 7}, {x, values({70}, 2), values({70}, 3)});
  compare_with_float64(LrnAttrs{.size = 5}, {x});
  compare_with_float64(DftAttrs{.axis = 1}, {values({2, 12, 2})});
  const Tensor steps = values({4, 3, 6});
  compare_with_float64(LstmAttrs{.hidden_size = 5}, {steps, values({1, 20, 6}, 2), values({1, 20, 5}, 3)});
  compare_with_float64(GruAttrs{.hidden_size = 5}, {steps, values({1, 15, 6}, 2), values({1, 15, 5}, 3)});
  compare_with_float64(RnnAttrs{.hidden_size = 5}, {steps, values({1, 5, 6}, 2), values({1, 5, 5}, 3)});
}

Tensor bfloats(Shape dims, uint64_t seed = 1, double low = -2, double high = 2) {
  return halved(noise<float>(std::move(dims), low, high, seed), DType::kBFloat16);
}

// Lengths around the pieces that are widened, and operands that are repeated.
TEST(BFloat16, HighwayComputesElementByElement) {
  for (const int64_t n : {1, 15, 33, 2047, 2049, 5000, 40000}) {
    check_taken_by("simd", AddAttrs{}, {bfloats({n}), bfloats({n}, 2)});
    check_taken_by("simd", MulAttrs{.act_min = -1, .act_max = 1}, {bfloats({n}), bfloats({1}, 2)});
    check_taken_by("simd", ClampAttrs{.min = 0, .max = 1}, {bfloats({n})});
    check_taken_by("simd", SiluAttrs{}, {bfloats({n}, 1, -20, 20)});
    check_taken_by("simd", HardSwishAttrs{}, {bfloats({n}, 1, -9, 9)});
  }
  check_taken_by("simd", SubAttrs{}, {bfloats({3, 7, 600}), bfloats({600}, 2)});
  check_taken_by("simd", AddAttrs{}, {bfloats({1, 1, 96}), bfloats({2, 9, 96}, 2)});
  check_taken_by("simd", PReluAttrs{}, {bfloats({5, 5, 33}), bfloats({33}, 2)});
  for (const Tensor& x : {finite_halves(3, DType::kBFloat16), bfloats({50, 41}, 3, -9, 9)}) {
    check_taken_by("simd", AbsAttrs{}, {x});
    check_taken_by("simd", NegAttrs{}, {x});
    check_taken_by("simd", SigmoidAttrs{}, {x});
    check_taken_by("simd", TanhAttrs{}, {x});
    check_taken_by("simd", LeakyReluAttrs{.alpha = 0.125}, {x});
  }
}

TEST(BFloat16, HighwayTakesMaxima) {
  for (const int64_t channels : {1, 15, 16, 33, 70, 130}) {
    Tensor x = bfloats({2, 7, 9, channels});
    check_taken_by("simd", MaxPoolAttrs{.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}, {x});
    const uint16_t nan = 0xffc0;
    std::memcpy(x.bytes.data() + x.bytes.size() / 2, &nan, sizeof nan);
    check_taken_by("simd", MaxPoolAttrs{.kernel = {2, 3}, .dilations = {1, 2}}, {x});
  }
}

TEST(BFloat16, HighwayCasts) {
  std::vector<uint32_t> bits;
  // Every upper half with the lower halves at which rounding turns.
  for (uint32_t upper = 0; upper < 0x10000; upper += 5)
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      bits.push_back(upper << 16 | lower);
  const Tensor x = bits_tensor(DType::kFloat32, {static_cast<int64_t>(bits.size())}, bits);
  check_taken_by("simd", CastAttrs{.to = static_cast<int64_t>(DType::kBFloat16)}, {x});
  for (const int64_t n : {1, 17, 31, 40000})
    check_taken_by("simd", CastAttrs{.to = static_cast<int64_t>(DType::kFloat32)}, {bfloats({n})});
}

TEST(BFloat16, OneDnnComputesProducts) {
  const auto check = [](const auto& attrs, const std::vector<Tensor>& inputs) {
    if (computes_in_bfloat16())
      check_taken_by("onednn", attrs, inputs);
    else
      EXPECT_FALSE(takes("onednn", attrs, inputs));
  };
  const auto conv = [&](Shape x, Shape w, int64_t stride, int64_t pad, bool bias, double low) {
    ConvAttrs a;
    a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {pad, pad, pad, pad}, a.act_min = low;
    std::vector<Tensor> in{bfloats(std::move(x)), bfloats(w, 2)};
    if (bias) in.push_back(bfloats({w[0]}, 3));
    check(a, in);
  };
  conv({1, 9, 11, 16}, {24, 3, 3, 16}, 1, 1, true, 0);
  conv({2, 9, 11, 17}, {33, 3, 3, 17}, 2, 1, false, -kInf);
  conv({1, 15, 14, 3}, {24, 3, 3, 3}, 2, 1, true, 0);
  conv({1, 7, 7, 96}, {130, 1, 1, 96}, 1, 0, true, -kInf);
  conv({1, 28, 28, 512}, {128, 1, 1, 512}, 1, 0, true, 0);
  conv({1, 14, 14, 256}, {96, 1, 1, 256}, 2, 0, true, 0);
  conv({1, 56, 60, 40}, {64, 7, 7, 40}, 2, 3, false, 0);
  DepthwiseConvAttrs depthwise;
  depthwise.strides = {1, 1}, depthwise.dilations = {1, 1}, depthwise.pads = {1, 1, 1, 1};
  check(depthwise, {bfloats({1, 9, 12, 40}), bfloats({3, 3, 40}, 2), bfloats({40}, 3)});
  for (const int64_t rows : {1, 5, 64, 300}) {
    check(FullyConnectedAttrs{.act_min = 0}, {bfloats({rows, 70}), bfloats({19, 70}, 2), bfloats({19}, 3)});
    check(MatMulAttrs{}, {bfloats({2, rows, 512}), bfloats({512, 200}, 2)});
  }
  check(MatMulAttrs{.transpose_b = 1}, {bfloats({3, 5, 128}), bfloats({256, 128}, 2)});
}

}  // namespace
}  // namespace sinter::test
