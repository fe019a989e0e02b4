// NaN, infinities and numbers below the smallest normal one: every backend gives what the reference gives, in
// float64 and then rounded once. Highway's kernels run on every instruction set of this machine, XNNPACK's on
// the one that SINTER_CPU_CAP leaves.
#ifdef SINTER_WITH_XNNPACK

#include <cmath>
#include <string>

#include "platforms/simd/simd_kernels.h"
#include "platforms/xnnpack/platform.h"
#include "runtime/core/op_enums.h"
#include "sinter/thread_pool.h"
#include "tests/op_harness/simd_test.h"
#include "tests/op_harness/xnnpack_test.h"

namespace sinter::test {
namespace {

// Whether the XNNPACK backend is meant to take the call; the Highway kernels are asked wherever they accept
// it.
enum class Library { kTakes, kRefuses };

template <class A>
void check(const A& attrs, const xnn::Case& c, double rtol, double atol, Library library = Library::kTakes) {
  std::vector<Tensor> wide, want, got;
  for (const Tensor& t : c.inputs) wide.push_back(converted(t, DType::kFloat64));
  std::vector<TensorView> shapes;
  ASSERT_TRUE(infer_op(attrs, wide, &shapes).ok());
  ASSERT_TRUE(run_once(attrs, wide, shapes, Layout::kDense, Layout::kDense, -1, &want).ok());
  const Tensor expected = converted(want[0], DType::kFloat32);
  static PthreadPool two(2);
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), static_cast<ThreadPool*>(&two)}) {
    SCOPED_TRACE(std::string(op_name(A::kOp)) + (pool != nullptr ? ", 2 threads" : ", 1 thread"));
    {
      SCOPED_TRACE("reference in float32");
      ASSERT_TRUE(infer_op(attrs, c.inputs, &shapes).ok());
      ASSERT_TRUE(run_once(attrs, c.inputs, shapes, Layout::kDense, Layout::kDense, -1, &got).ok());
      expect_near(got[0], expected, rtol, atol);
    }
    Tensor result;
    const bool taken = xnn::run_step(attrs, c, pool, &result);
    EXPECT_EQ(taken, library == Library::kTakes);
    if (taken) {
      SCOPED_TRACE("xnnpack");
      expect_near(result, expected, rtol, atol);
    }
    for (const char* tier : simd_tiers()) {
      SCOPED_TRACE(tier);
      ASSERT_TRUE(set_simd_cap(tier));
      if (run_simd(attrs, c.inputs, pool, {}, &got)) expect_near(got[0], expected, rtol, atol);
    }
    set_simd_cap(nullptr);
  }
}

// `special` at every `step`th place of noise, beginning with the `first`th.
Tensor sprinkled(const Shape& dims, float special, int64_t first, int64_t step) {
  auto v = noise<float>(dims, -2, 2, static_cast<uint64_t>(first + step)).values<float>();
  for (auto i = static_cast<size_t>(first); i < v.size(); i += static_cast<size_t>(step)) v[i] = special;
  return tensor<float>(dims, v);
}

template <class A>
A clamped(A attrs, int which) {
  if (which > 0) attrs.act_min = which == 1 ? 0 : -1;
  if (which > 1) attrs.act_max = 1;
  return attrs;
}

ConvAttrs conv_attrs(int64_t pad) {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {pad, pad, pad, pad};
  return a;
}
DepthwiseConvAttrs depthwise_attrs(int64_t pad) {
  DepthwiseConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {pad, pad, pad, pad};
  return a;
}
ConvTransposeAttrs transposed_attrs() {
  ConvTransposeAttrs a;
  a.strides = {2, 2}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0}, a.output_padding = {0, 0};
  return a;
}
template <class A>
A pool_attrs(int64_t kernel, int64_t stride, int64_t pad) {
  A a;
  a.kernel = {kernel, kernel}, a.strides = {stride, stride}, a.dilations = {1, 1},
  a.pads = {pad, pad, pad, pad};
  return a;
}

constexpr double kSums = 1e-5;

TEST(XnnpackAndSimd, NanThroughConvolutions) {
  for (const float special : {kNan, kInf, -kInf})
    for (int clamp = 0; clamp < 3; ++clamp)
      for (const int64_t in : {1, 4, 7})
        for (const int64_t out : {1, 3, 16, 40}) {
          SCOPED_TRACE(testing::Message() << special << ", clamp " << clamp << ", " << in << " to " << out);
          const Tensor x = sprinkled({1, 6, 7, in}, special, in + out, 31);
          check(clamped(conv_attrs(1), clamp), {{x, noise<float>({out, 3, 3, in}, 0.25, 1), Tensor{}}}, kSums,
                kSums);
          check(clamped(conv_attrs(0), clamp), {{x, noise<float>({out, 1, 1, in}, -1, 1)}}, kSums, kSums);
          check(clamped(transposed_attrs(), clamp), {{x, noise<float>({out, 2, 2, in}, -1, 1)}}, kSums,
                kSums);
        }
}

TEST(XnnpackAndSimd, NanThroughDepthwiseConvolutions) {
  for (const float special : {kNan, kInf, -kInf})
    for (int clamp = 0; clamp < 3; ++clamp)
      for (const int64_t c : {1, 5, 16, 37})
        for (const int64_t k : {1, 2, 3, 5}) {
          SCOPED_TRACE(testing::Message()
                       << special << ", clamp " << clamp << ", " << c << " channels, kernel " << k);
          const Tensor x = sprinkled({1, 7, 7, c}, special, c + k, 23);
          check(clamped(depthwise_attrs(k / 2), clamp),
                {{x, noise<float>({k, k, c}, 0.25, 1), noise<float>({c}, 0, 1)}}, kSums, kSums);
        }
}

TEST(XnnpackAndSimd, NanThroughProducts) {
  for (const float special : {kNan, kInf, -kInf})
    for (const int64_t k : {1, 5, 8, 19})
      for (const int64_t n : {1, 2, 3, 17, 40}) {
        SCOPED_TRACE(testing::Message() << special << ", " << k << " to " << n);
        const Tensor x = sprinkled({5, k}, special, k / 2, 11), w = noise<float>({n, k}, 0.25, 1);
        for (int clamp = 0; clamp < 3; ++clamp)
          check(clamped(FullyConnectedAttrs{}, clamp), {{x, w, noise<float>({n}, 0, 1)}}, kSums, kSums);
        check(MatMulAttrs{.transpose_b = 1}, {{x, w}}, kSums, kSums);
        check(MatMulAttrs{.transpose_b = 1}, {{x, w}, false}, kSums, kSums);
      }
}

// A product with a weight of zero is NaN like any other.
TEST(XnnpackAndSimd, NanTimesZero) {
  for (const float special : {kNan, kInf})
    for (const int64_t out : {1, 2, 3, 20}) {
      const Tensor x = sprinkled({1, 4, 4, 5}, special, 4, 20);
      check(conv_attrs(0), {{x, full<float>({out, 1, 1, 5}, 0)}}, 0, 0);
      check(conv_attrs(0), {{x, full<float>({out, 2, 2, 5}, 0)}}, 0, 0);
      check(FullyConnectedAttrs{}, {{x, full<float>({out, 5}, 0)}}, 0, 0);
    }
}

TEST(XnnpackAndSimd, NanThroughPools) {
  for (const float special : {kNan, kInf, -kInf})
    for (const int64_t c : {1, 7, 33})
      for (const int64_t kernel : {2, 3, 5})
        for (const int64_t stride : {1, 2})
          for (const int64_t first : {0, 7, 19}) {
            SCOPED_TRACE(testing::Message() << special << ", " << c << " channels, kernel " << kernel);
            const Tensor x = sprinkled({1, 8, 9, c}, special, first, 13 * c);
            check(pool_attrs<MaxPoolAttrs>(kernel, stride, kernel / 2), {{x}}, 0, 0);
            check(pool_attrs<MaxPoolAttrs>(kernel, stride, 0), {{x}}, 0, 0);
            check(pool_attrs<AvgPoolAttrs>(kernel, stride, kernel / 2), {{x}}, kSums, kSums);
            check(pool_attrs<AvgPoolAttrs>(kernel, stride, 0), {{x}}, kSums, kSums);
          }
}

TEST(XnnpackAndSimd, NanThroughArithmetic) {
  const Tensor a = tensor<float>({3, 7}, {kNan, 1, kInf, -kInf, kNan,  0, 3, 1, 2, -1, -0.0f,
                                          kInf, 5, 6,    1,     -kNan, 2, 4, 8, 0, -4}),
               b = tensor<float>({7}, {1, kNan, 2, -2, kNan, 0, kInf}), one = tensor<float>({1}, {kNan});
  // XNNPACK takes the sign bit for "negative", so it also multiplies -0.0, which a slope that is not finite
  // makes NaN.
  const Tensor without_zeros =
      tensor<float>({2, 7}, {kNan, 1, kInf, -kInf, kNan, 2, 3, 1, -kNan, -1, -3, kInf, 5, 6});
  for (const Tensor& other : {b, one}) {
    for (int clamp = 0; clamp < 3; ++clamp) {
      const Library library = clamp == 0 ? Library::kTakes : Library::kRefuses;
      check(clamped(AddAttrs{}, clamp), {{a, other}}, 1e-6, 0, library);
      check(clamped(SubAttrs{}, clamp), {{a, other}}, 1e-6, 0, library);
      check(clamped(MulAttrs{}, clamp), {{a, other}}, 1e-6, 0, library);
      check(clamped(DivAttrs{}, clamp), {{a, other}}, 1e-6, 0, library);
    }
    check(PReluAttrs{}, {{without_zeros, other}}, 1e-6, 0);
    check(MaxAttrs{}, {{a, other}}, 0, 0, Library::kRefuses);
    check(MinAttrs{}, {{a, other}}, 0, 0, Library::kRefuses);
  }
  check(ClampAttrs{.min = -1, .max = 1}, {{a}}, 0, 0, Library::kRefuses);
  check(ClampAttrs{.min = 0, .max = kInfinity}, {{a}}, 0, 0, Library::kRefuses);
}

#ifndef __arm__  // NEON of 32-bit ARM takes and gives zero for them; no option changes that.

// Of both signs, all below the smallest normal number, and multiples of 4 of the smallest of all.
Tensor subnormals(const Shape& dims) {
  std::vector<float> v(full<float>(dims, 0).values<float>());
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = std::ldexp(static_cast<float>(static_cast<int>(i * 7919 % 200001) - 100000), -147);
  return tensor<float>(dims, v);
}

TEST(XnnpackAndSimd, SubnormalsThroughArithmetic) {
  const Tensor x = subnormals({3, 5, 37});
  check(AddAttrs{}, {{x, subnormals({37})}}, 0, 0);
  check(SubAttrs{}, {{x, subnormals({5, 37})}}, 0, 0);
  check(MulAttrs{}, {{x, full<float>({37}, 0.5f)}}, 0, 0);
  check(MulAttrs{}, {{full<float>({5, 37}, 0x1p-70f), full<float>({37}, 0x1p-70f)}}, 0, 0);
  check(DivAttrs{}, {{x, full<float>({37}, 2)}}, 0, 0);
  check(DivAttrs{}, {{full<float>({5, 37}, 0x1p-70f), full<float>({37}, 0x1p70f)}}, 0, 0);
  check(PReluAttrs{}, {{x, full<float>({37}, 0.25f)}}, 0, 0);
  check(PadAttrs{.pads = {0, 1, 0, 1, 0, 1}}, {{x}}, 0, 0);
  check(MaxAttrs{}, {{x, subnormals({37})}}, 0, 0, Library::kRefuses);
  check(MinAttrs{}, {{x, subnormals({37})}}, 0, 0, Library::kRefuses);
  check(ClampAttrs{.min = 0, .max = 6}, {{x}}, 0, 0, Library::kRefuses);
  ResizeAttrs resize;
  resize.mode = static_cast<int64_t>(ResizeMode::kLinear);
  resize.coordinates = static_cast<int64_t>(ResizeCoordinates::kAlignCorners);
  resize.sizes = {1, 6, 10, 9}, resize.scales = {1, 2, 2, 1};
  check(resize, {{full<float>({1, 3, 5, 9}, 0x1p-140f)}}, 0, 0);
}

TEST(XnnpackAndSimd, SubnormalsThroughPools) {
  for (const int64_t c : {3, 19}) {
    const Tensor x = subnormals({1, 6, 6, c});
    for (const int64_t kernel : {2, 3, 4}) check(pool_attrs<MaxPoolAttrs>(kernel, 1, 0), {{x}}, 0, 0);
    for (const int64_t kernel : {2, 4})
      check(pool_attrs<AvgPoolAttrs>(kernel, 1, 0), {{full<float>({1, 6, 6, c}, 0x1p-140f)}}, 0, 0);
  }
}

// Weights of one: every sum has one term, or a few that add up exactly.
TEST(XnnpackAndSimd, SubnormalsThroughConvolutions) {
  for (const int64_t in : {1, 3, 8})
    for (const int64_t out : {1, 2, 16, 40}) {
      SCOPED_TRACE(testing::Message() << in << " to " << out);
      const Tensor x = subnormals({1, 5, 6, in});
      check(conv_attrs(0), {{x, full<float>({out, 1, 1, in}, 1)}}, 0, 0);
      check(clamped(conv_attrs(1), 1), {{x, full<float>({out, 3, 3, in}, 1)}}, 0, 0);
      check(transposed_attrs(), {{x, full<float>({out, 2, 2, in}, 1)}}, 0, 0);
      check(FullyConnectedAttrs{}, {{x, full<float>({out, in}, 1)}}, 0, 0);
      check(MatMulAttrs{}, {{x, full<float>({in, out}, 1)}}, 0, 0);
      check(MatMulAttrs{}, {{x, full<float>({in, out}, 1)}, false}, 0, 0);
    }
  for (const int64_t c : {1, 7, 33})
    for (const int64_t k : {1, 2, 3, 5})
      check(depthwise_attrs(k / 2), {{subnormals({1, 6, 6, c}), full<float>({k, k, c}, 1)}}, 0, 0);
}

#endif

}  // namespace
}  // namespace sinter::test

#endif
