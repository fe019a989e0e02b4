// The XNNPACK backend against the reference kernels computing in float64: random shapes and attributes,
// exactly the memory that was measured, one thread and three (same bits). Every bound is relative to the
// largest result unless a case has another.
#ifdef SINTER_WITH_XNNPACK

#include <algorithm>

#include "platforms/xnnpack/platform.h"
#include "runtime/core/op_enums.h"
#include "tests/op_harness/xnnpack_test.h"

namespace sinter::test::xnn {
namespace {

TEST(Xnnpack, Conv) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, 5, 3);
    ConvAttrs a;
    a.strides = g.strides, a.dilations = g.dilations, a.pads = g.pads;
    a.group = r.from(0, 3) == 0 ? r.from(2, 4) : 1;
    clamp(r, a);
    const int64_t in = r.from(1, 24), out = r.from(1, 50);
    Case c{{r.values(g.with(r.from(1, 3), in * a.group)), r.values(g.weights(out * a.group, in)),
            r.half() ? r.values({out * a.group}) : Tensor{}}};
    taken += check(a, c, kSumBound);
  }
  EXPECT_EQ(taken, 50);
}

TEST(Xnnpack, ConvOfOneElementKernels) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    ConvAttrs a;
    const int64_t stride = seed % 2 == 0 ? 1 : 2, in = r.from(1, 300), out = r.from(1, 200);
    a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
    clamp(r, a);
    EXPECT_TRUE(check(a,
                      {{r.values({r.from(1, 2), r.from(1, 9), r.from(1, 9), in}), r.values({out, 1, 1, in})}},
                      kSumBound));
  }
}

TEST(Xnnpack, DepthwiseConv) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, seed % 5 == 0 ? 7 : 4, 2);
    DepthwiseConvAttrs a;
    a.strides = g.strides, a.dilations = g.dilations, a.pads = g.pads;
    clamp(r, a);
    // Many channels: the packed weights exceed what a dry run packs.
    const int64_t channels = seed % 10 == 0 ? r.from(1700, 1900) : r.from(1, 90);
    const int64_t out = channels * (seed % 6 == 0 ? 2 : 1);
    Case c{{r.values(g.with(r.from(1, 2), channels)), r.values(g.weights(0, out)),
            r.half() ? r.values({out}) : Tensor{}}};
    taken += check(a, c, kSumBound);
  }
  EXPECT_EQ(taken, 50);
}

TEST(Xnnpack, ConvTranspose) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
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
    Case c{{r.values(g.with(r.from(1, 2), in * a.group)), r.values(g.weights(out * a.group, in)),
            r.half() ? r.values({out * a.group}) : Tensor{}}};
    taken += check(a, c, kSumBound);
  }
  EXPECT_GE(taken, 45);
}

TEST(Xnnpack, Products) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int64_t m = r.from(1, 20), k = r.from(1, 120), n = r.from(1, 70);
    FullyConnectedAttrs full;
    clamp(r, full);
    EXPECT_TRUE(check(full, {{r.values({2, m, k}), r.values({n, k}), r.half() ? r.values({n}) : Tensor{}}},
                      kSumBound));
    MatMulAttrs a;
    a.transpose_b = seed % 2;
    const Shape b = a.transpose_b ? Shape{n, k} : Shape{k, n};
    EXPECT_TRUE(check(a, {{r.values({3, m, k}), r.values(b)}}, kSumBound));
    EXPECT_TRUE(check(a, {{r.values({3, m, k}), r.values(b)}, false}, kSumBound));
    Shape batched = {r.half() ? 2 : 1, r.half() ? 3 : 1};
    batched.insert(batched.end(), b.begin(), b.end());
    EXPECT_TRUE(check(a, {{r.values({2, 3, m, k}), r.values(batched)}, r.half()}, kSumBound));
    EXPECT_TRUE(check(a, {{r.values({m, k}), r.values(batched)}, false}, kSumBound));
  }
}

TEST(Xnnpack, Pooling) {
  int taken = 0, asked = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, 5, seed % 8 == 1 ? 2 : 1);
    for (int i = 0; i < axes; ++i) g.strides[i] = std::min(g.strides[i], g.kernel[i]);
    for (int i = 0; i < 2 * axes; ++i) g.pads[i] = std::min(g.pads[i], g.kernel[i % axes] - 1);
    const Case c{{r.values(g.with(r.from(1, 2), r.from(1, 80)))}};
    const int64_t ceil = seed % 3 == 0;
    MaxPoolAttrs most;
    most.kernel = g.kernel, most.strides = g.strides, most.dilations = g.dilations, most.pads = g.pads;
    most.ceil_mode = ceil;
    taken += check(most, c, 0);
    AvgPoolAttrs mean;
    mean.kernel = g.kernel, mean.strides = g.strides, mean.dilations = g.dilations, mean.pads = g.pads;
    mean.ceil_mode = ceil;
    taken += check(mean, c, 2e-6);
    mean.count_include_pad = 1;
    taken += check(mean, c, 2e-6);
    asked += 3;
  }
  EXPECT_GE(taken, asked / 2);
}

TEST(Xnnpack, Resize) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    const int64_t h = r.from(1, 12), w = r.from(2, 20), c = r.from(1, 40);
    ResizeAttrs a;
    a.mode = static_cast<int64_t>(ResizeMode::kLinear);
    a.coordinates = static_cast<int64_t>(seed % 3 == 0   ? ResizeCoordinates::kHalfPixel
                                         : seed % 3 == 1 ? ResizeCoordinates::kAlignCorners
                                                         : ResizeCoordinates::kAsymmetric);
    a.sizes = {2, h * r.from(1, 3), w * r.from(1, 4), c};
    if (h > 1 && r.half()) a.sizes[1] = r.from(2, 2 * h);
    for (int i = 0; i < 4; ++i)
      a.scales.push(static_cast<double>(a.sizes[i]) /
                    static_cast<double>(Shape{2, h, w, c}[static_cast<size_t>(i)]));
    // Coordinates are float32: the error grows with the extent.
    EXPECT_TRUE(check(a, {{r.values({2, h, w, c})}}, 2e-5));
  }
}

template <class A>
void check_binary(double bound) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random r(seed);
    Shape a, b;
    const int64_t rank = r.from(1, 6);
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t n = r.from(1, 5), kind = r.from(0, 3);
      a.push_back(kind == 1 ? 1 : n), b.push_back(kind == 2 ? 1 : n);
    }
    if (r.half()) b.erase(b.begin(), b.begin() + r.from(0, rank));
    Tensor divisor = noise<float>(b, 0.5, 2, seed);
    EXPECT_TRUE(check(A{}, {{r.values(a), divisor}, r.half()}, bound));
  }
}
TEST(Xnnpack, Arithmetic) {
  check_binary<AddAttrs>(1e-6);
  check_binary<SubAttrs>(1e-6);
  check_binary<MulAttrs>(1e-6);
  check_binary<DivAttrs>(1e-6);
}

TEST(Xnnpack, PRelu) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random r(seed);
    const int64_t c = r.from(1, 70);
    const Shape slopes = seed % 3 == 0 ? Shape{1} : seed % 3 == 1 ? Shape{c} : Shape{1, 1, c};
    EXPECT_TRUE(check(PReluAttrs{}, {{r.values({2, 3, 5, c}), r.values(slopes)}}, 1e-6));
  }
}

TEST(Xnnpack, Pad) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random r(seed);
    Shape dims;
    PadAttrs a;
    const int64_t rank = r.from(1, 5);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(r.from(1, 6));
    for (int64_t i = 0; i < 2 * rank; ++i) a.pads.push(r.half() ? 0 : r.from(0, 3));
    EXPECT_TRUE(check(a, {{r.values(dims), r.half() ? tensor<float>({}, {2.5f}) : Tensor{}}}, 0));
  }
}

template <class A>
void refused(const A& attrs, const Case& c) {
  Tensor t;
  EXPECT_FALSE(run_step(attrs, c, nullptr, &t)) << op_name(A::kOp);
}
TEST(Xnnpack, RefusesWhatItCannotDo) {
  ConvAttrs conv;
  conv.strides = {1, 1}, conv.dilations = {1, 1}, conv.pads = {0, 0, 0, 0};
  const Tensor x = noise<float>({1, 4, 4, 2}, -1, 1), f = noise<float>({3, 2, 2, 2}, -1, 1);
  refused(conv, {{x, f}, false});
  refused(conv, {{widened(x), widened(f)}});
  conv.act_min = conv.act_max = 0;
  refused(conv, {{x, f}});
  refused(FullyConnectedAttrs{}, {{noise<float>({0, 2}, -1, 1), noise<float>({3, 2}, -1, 1)}});
  AddAttrs add;
  add.act_min = 0;
  refused(add, {{x, x}});
  MatMulAttrs product;
  product.transpose_a = 1;
  refused(product, {{noise<float>({4, 3}, -1, 1), noise<float>({4, 2}, -1, 1)}});
  MaxPoolAttrs pool;
  pool.kernel = {2, 2}, pool.strides = {1, 1}, pool.dilations = {1, 1}, pool.pads = {0, 0, 0, 0};
  refused(pool, {{x}, true, 2});
  refused(SoftmaxAttrs{}, {{x}});
}

}  // namespace
}  // namespace sinter::test::xnn

#endif
