// The XNNPACK backend on float16, against the reference kernels in float64 on the same numbers, as in
// xnnpack_cases.cc. Processors without float16 arithmetic refuse; the emulator of the ARM tests has it.
#ifdef SINTER_WITH_XNNPACK

#include <algorithm>
#include <string>

#include "platforms/xnnpack/platform.h"
#include "runtime/core/op_enums.h"
#include "tests/op_harness/half_test.h"
#include "tests/op_harness/xnnpack_test.h"
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sinter::test::xnn {
namespace {

bool computes_in_half() {
#if defined(__aarch64__)
  const char* cap = std::getenv("SINTER_CPU_CAP");
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0 && (cap == nullptr || std::string(cap) != "neon");
#else
  return false;
#endif
}

constexpr double kSmallestNormal = 0x1p-14;
constexpr double kUlp = 0x1p-10;          // of float16, relative
constexpr double kHalfSum = 2 * kUlp;     // of the terms' magnitudes: sums are rounded at every term
constexpr double kHalfResult = kUlp / 2;  // of the largest result: rounded once

// Without float16 arithmetic the backend refuses.
template <class A>
bool check_half(const A& attrs, Case c, double bound) {
  for (Tensor& t : c.inputs) t = halved(t);
  if (computes_in_half()) return check(attrs, c, bound);
  Tensor t;
  EXPECT_FALSE(run_step(attrs, c, nullptr, &t)) << op_name(A::kOp);
  return true;
}

TEST(XnnpackHalf, Conv) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    Geometry g(r, seed % 4 == 0 ? 1 : 2, 5, 3);
    ConvAttrs a;
    a.strides = g.strides, a.dilations = g.dilations, a.pads = g.pads;
    a.group = r.from(0, 3) == 0 ? r.from(2, 4) : 1;
    clamp(r, a);
    const int64_t in = r.from(1, 24), out = r.from(1, 50);
    taken +=
        check_half(a,
                   {{r.values(g.with(r.from(1, 3), in * a.group)), r.values(g.weights(out * a.group, in)),
                     r.half() ? r.values({out * a.group}) : Tensor{}}},
                   kHalfSum);
  }
  EXPECT_EQ(taken, 20);
}

TEST(XnnpackHalf, ConvOfOneElementKernels) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    ConvAttrs a;
    const int64_t stride = seed % 2 == 0 ? 1 : 2, in = r.from(1, 300), out = r.from(1, 200);
    a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
    clamp(r, a);
    EXPECT_TRUE(
        check_half(a, {{r.values({r.from(1, 2), r.from(1, 9), r.from(1, 9), in}), r.values({out, 1, 1, in})}},
                   kHalfSum));
  }
}

TEST(XnnpackHalf, DepthwiseConv) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    Geometry g(r, seed % 4 == 0 ? 1 : 2, seed % 5 == 0 ? 7 : 4, 2);
    DepthwiseConvAttrs a;
    a.strides = g.strides, a.dilations = g.dilations, a.pads = g.pads;
    clamp(r, a);
    const int64_t channels = seed % 10 == 0 ? r.from(3400, 3800) : r.from(1, 90);
    const int64_t out = channels * (seed % 6 == 0 ? 2 : 1);
    taken += check_half(a,
                        {{r.values(g.with(r.from(1, 2), channels)), r.values(g.weights(0, out)),
                          r.half() ? r.values({out}) : Tensor{}}},
                        kHalfSum);
  }
  EXPECT_EQ(taken, 20);
}

TEST(XnnpackHalf, ConvTranspose) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, 4, 2);
    ConvTransposeAttrs a;
    a.strides = g.strides, a.dilations = g.dilations;
    for (int i = 0; i < 2 * axes; ++i) a.pads.push(r.half() ? 0 : r.from(0, g.kernel[i % axes] - 1));
    for (int i = 0; i < axes; ++i)
      a.output_padding.push(r.from(0, std::min<int64_t>(g.strides[i], g.dilations[i]) - 1));
    a.group = r.from(0, 4) == 0 ? 2 : 1;
    clamp(r, a);
    const int64_t in = r.from(1, 60), out = r.from(1, 40);
    taken +=
        check_half(a,
                   {{r.values(g.with(r.from(1, 2), in * a.group)), r.values(g.weights(out * a.group, in)),
                     r.half() ? r.values({out * a.group}) : Tensor{}}},
                   kHalfSum);
  }
  EXPECT_GE(taken, 17);
}

TEST(XnnpackHalf, Products) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int64_t m = r.from(1, 20), k = r.from(1, 120), n = r.from(1, 70);
    FullyConnectedAttrs full;
    clamp(r, full);
    EXPECT_TRUE(check_half(
        full, {{r.values({2, m, k}), r.values({n, k}), r.half() ? r.values({n}) : Tensor{}}}, kHalfSum));
    MatMulAttrs a;
    a.transpose_b = seed % 2;
    const Shape b = a.transpose_b ? Shape{n, k} : Shape{k, n};
    EXPECT_TRUE(check_half(a, {{r.values({3, m, k}), r.values(b)}}, kHalfSum));
    EXPECT_TRUE(check_half(a, {{r.values({3, m, k}), r.values(b)}, false}, kHalfSum));
    Shape batched = {r.half() ? 2 : 1, r.half() ? 3 : 1};
    batched.insert(batched.end(), b.begin(), b.end());
    EXPECT_TRUE(check_half(a, {{r.values({2, 3, m, k}), r.values(batched)}, r.half()}, kHalfSum));
  }
}

TEST(XnnpackHalf, Pooling) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, 5, 1);
    for (int i = 0; i < axes; ++i) g.strides[i] = std::min(g.strides[i], g.kernel[i]);
    for (int i = 0; i < 2 * axes; ++i) g.pads[i] = std::min(g.pads[i], g.kernel[i % axes] - 1);
    const Case c{{r.values(g.with(r.from(1, 2), r.from(1, 80)))}};
    MaxPoolAttrs most;
    most.kernel = g.kernel, most.strides = g.strides, most.dilations = g.dilations, most.pads = g.pads;
    taken += check_half(most, c, 0);
    AvgPoolAttrs mean;
    mean.kernel = g.kernel, mean.strides = g.strides, mean.dilations = g.dilations, mean.pads = g.pads;
    taken += check_half(mean, c, 4 * kUlp);
  }
  EXPECT_GE(taken, 20);
}

TEST(XnnpackHalf, Resize) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int64_t h = r.from(1, 12), w = r.from(2, 20), c = r.from(1, 40);
    ResizeAttrs a;
    a.mode = static_cast<int64_t>(ResizeMode::kLinear);
    a.coordinates = static_cast<int64_t>(seed % 2 == 0 ? ResizeCoordinates::kHalfPixel
                                                       : ResizeCoordinates::kAlignCorners);
    a.sizes = {2, h * r.from(1, 3), w * r.from(1, 4), c};
    for (int i = 0; i < 4; ++i)
      a.scales.push(static_cast<double>(a.sizes[i]) /
                    static_cast<double>(Shape{2, h, w, c}[static_cast<size_t>(i)]));
    if (h > 1 || a.sizes[1] == 1) {
      EXPECT_TRUE(check_half(a, {{r.values({2, h, w, c})}}, 4 * kUlp));
    }
  }
}

template <class A>
void check_half_binary() {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    Shape a, b;
    const int64_t rank = r.from(1, 6);
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t n = r.from(1, 5), kind = r.from(0, 3);
      a.push_back(kind == 1 ? 1 : n), b.push_back(kind == 2 ? 1 : n);
    }
    EXPECT_TRUE(check_half(A{}, {{r.values(a), noise<float>(b, 0.5, 2, seed)}, r.half()}, kHalfResult));
  }
}
TEST(XnnpackHalf, Arithmetic) {
  check_half_binary<AddAttrs>();
  check_half_binary<SubAttrs>();
  check_half_binary<MulAttrs>();
  check_half_binary<DivAttrs>();
  check_half_binary<MinAttrs>();
  check_half_binary<MaxAttrs>();
}

// Of every finite float16 number; `bound` relative to the exact value or the smallest normal number,
// whichever is larger, besides what is flushed to zero: `flushed` at most.
template <class A>
void check_function(const A& attrs, double bound, double flushed = 0) {
  const Case c{{finite_halves()}};
  if (!computes_in_half()) {
    EXPECT_TRUE(check_half(attrs, c, 0));
    return;
  }
  Tensor got;
  ASSERT_TRUE(run_step(attrs, c, nullptr, &got)) << op_name(A::kOp);
  const auto x = widened(c.inputs[0]).values<double>(), y = widened(got).values<double>();
  const auto exact = run_op(attrs, {widened(c.inputs[0])})[0].template values<double>();
  double worst = 0, at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (float16_value(float16_bits(exact[i])) == y[i]) continue;  // infinities among them
    const double difference = std::abs(y[i] - exact[i]) - (y[i] == 0 ? flushed : 0);
    const double error = difference / std::max(std::abs(exact[i]), kSmallestNormal);
    if (!(error <= worst)) worst = error, at = x[i];
  }
  EXPECT_LE(worst, bound) << op_name(A::kOp) << " of " << at;
}
TEST(XnnpackHalf, FunctionsOfEveryNumber) {
  check_function(AbsAttrs{}, 0);
  check_function(NegAttrs{}, 0);
  check_function(ClampAttrs{.min = -1, .max = 6}, 0);
  check_function(LeakyReluAttrs{.alpha = 0.125}, kHalfResult);
  check_function(SigmoidAttrs{}, 4 * kUlp, kSmallestNormal);  // below -9.7 it is 0
  check_function(TanhAttrs{}, 4 * kUlp);
  check_function(HardSwishAttrs{}, 4 * kUlp);
}

TEST(XnnpackHalf, Moves) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    Shape dims;
    PadAttrs pad;
    TransposeAttrs transpose;
    const int64_t rank = r.from(1, 5);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(r.from(1, 9)), transpose.perm.push(i);
    std::shuffle(transpose.perm.items, transpose.perm.items + rank, r.engine);
    for (int64_t i = 0; i < 2 * rank; ++i) pad.pads.push(r.half() ? 0 : r.from(0, 3));
    const Tensor x = halved(r.values(dims));
    EXPECT_TRUE(check(pad, {{x, r.half() ? halved(tensor<float>({}, {2.5f})) : Tensor{}}}, 0));
    EXPECT_TRUE(check(transpose, {{x}}, 0));
  }
}

// Casts give the reference kernel's bits.
TEST(XnnpackHalf, Casts) {
  std::vector<float> values = {65519, 65520, -1e9f, 1e-8f, -0.0f, 0x1p-25f, 0x1.004p-14f};
  const Tensor random = noise<float>({1000}, -70000, 70000);
  for (const float v : random.values<float>()) values.push_back(v), values.push_back(v * 0x1p-30f);
  const Tensor wide = tensor<float>({static_cast<int64_t>(values.size())}, values), narrow = finite_halves();
  const CastAttrs down{.to = static_cast<int64_t>(DType::kFloat16)},
      up{.to = static_cast<int64_t>(DType::kFloat32)};
  Tensor got;
  ASSERT_TRUE(run_step(down, {{wide}}, nullptr, &got));
  EXPECT_EQ(got.bytes, run_op(down, {wide})[0].bytes);
  ASSERT_TRUE(run_step(up, {{narrow}}, nullptr, &got));
  EXPECT_EQ(got.bytes, run_op(up, {narrow})[0].bytes);
}

TEST(XnnpackHalf, RefusesWhatItCannotDo) {
  Tensor t;
  const Tensor x = halved(noise<float>({1, 4, 4, 2}, -1, 1)), f = noise<float>({3, 2, 2, 2}, -1, 1);
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0};
  EXPECT_FALSE(run_step(conv, {{x, halved(f)}, false}, nullptr, &t));
  EXPECT_FALSE(run_step(ClampAttrs{.min = 0, .max = 1e6}, {{x}}, nullptr, &t));
  EXPECT_FALSE(run_step(SigmoidAttrs{}, {{f}}, nullptr, &t));  // float32: other kernels
  EXPECT_FALSE(run_step(SoftmaxAttrs{}, {{x}}, nullptr, &t));
}

}  // namespace
}  // namespace sinter::test::xnn

#endif
