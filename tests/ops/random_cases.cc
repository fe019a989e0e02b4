// Calls with random shapes and attributes, in float32, and the first of each in float16 as well.
#include <algorithm>
#include <random>

#include "runtime/core/op_enums.h"
#include "tests/ops/random_calls.h"
#include "tests/ops/random_half.h"

namespace sinter::test {
namespace {

constexpr uint64_t kHalfSeeds = 20;

template <class A>
void check_floats(uint64_t seed, const A& attrs, const std::vector<Tensor>& inputs) {
  check_taken_by("xnnpack", attrs, inputs);
  if (seed < kHalfSeeds) check_half(attrs, inputs);
}

// As check_floats, where XNNPACK refuses some calls; whether it takes this one in float32.
template <class A>
bool check_some(uint64_t seed, const A& attrs, const std::vector<Tensor>& inputs) {
  run_op(attrs, inputs);
  if (seed < kHalfSeeds) run_op(attrs, halved(inputs));
  return takes("xnnpack", attrs, inputs);
}

// XNNPACK, if it is built, must accept at least `minimum` calls.
void expect_taken(int taken, int minimum) {
  if (tested_backend("xnnpack") == nullptr) return;
  EXPECT_GE(taken, minimum);
}

// Up to 8 channels of output, and lines of more pixels than a vector has lanes.
TEST(Random, ConvOfFewChannels) {
  for (uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto pick = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    };
    ConvAttrs a{};
    const int64_t kh = pick(1, 5), kw = pick(1, 7), ic = seed % 3 == 0 ? pick(5, 40) : pick(1, 4),
                  oc = pick(1, 9);
    a.strides = {pick(1, 2), pick(1, 3)}, a.dilations = {pick(1, 2), seed % 4 == 0 ? 2 : 1};
    a.pads = {pick(0, 5), pick(0, 9), pick(0, 2), pick(0, 9)};
    if (seed % 2 == 0) a.act_min = -1, a.act_max = 2;
    const Shape x = {pick(1, 2), pick(9, 14), seed % 8 == 0 ? 700 : pick(17, 60), ic};
    std::vector<Tensor> inputs = {noise<float>(x, -1, 1, seed),
                                  noise<float>({oc, kh, kw, ic}, -1, 1, seed + 1)};
    if (seed % 5 != 0) inputs.push_back(noise<float>({oc}, -1, 1, seed + 2));
    check_taken_by("simd", a, inputs);
  }
  ConvAttrs a{};
  a.strides = {1, 2, 1}, a.dilations = {2, 1, 2}, a.pads = {1, 1, 1, 0, 1, 1};
  for (const int64_t oc : {3, 8})
    check_taken_by("simd", a,
                   {noise<float>({1, 6, 9, 25, 3}, -1, 1, 1), noise<float>({oc, 2, 3, 2, 3}, -1, 1, 2)});
}

TEST(Random, Conv) {
  for (uint64_t seed = 0; seed < 50; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, 5, 3);
    ConvAttrs a;
    a.strides = g.strides, a.dilations = g.dilations, a.pads = g.pads;
    a.group = r.from(0, 3) == 0 ? r.from(2, 4) : 1;
    clamp_some(r, a);
    const int64_t in = r.from(1, 24), out = r.from(1, 50);
    check_floats(seed, a,
                 {r.values(g.with(r.from(1, 3), in * a.group)), r.values(g.weights(out * a.group, in)),
                  r.half() ? r.values({out * a.group}) : Tensor{}});
  }
}

TEST(Random, ConvOfOneElementKernels) {
  for (uint64_t seed = 0; seed < 20; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    ConvAttrs a;
    const int64_t stride = seed % 2 == 0 ? 1 : 2, in = r.from(1, 300), out = r.from(1, 200);
    a.strides = {stride, stride}, a.dilations = {1, 1}, a.pads = {0, 0, 0, 0};
    clamp_some(r, a);
    check_floats(seed, a,
                 {r.values({r.from(1, 2), r.from(1, 9), r.from(1, 9), in}), r.values({out, 1, 1, in})});
  }
}

TEST(Random, DepthwiseConv) {
  for (uint64_t seed = 0; seed < 50; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, seed % 5 == 0 ? 7 : 4, 2);
    DepthwiseConvAttrs a;
    a.strides = g.strides, a.dilations = g.dilations, a.pads = g.pads;
    clamp_some(r, a);
    // Many channels: the packed weights exceed what a dry run of XNNPACK packs, in float16 as well.
    const int64_t many = seed < kHalfSeeds ? 3400 : 1700;
    const int64_t channels = seed % 10 == 0 ? r.from(many, many + 200) : r.from(1, 90);
    const int64_t out = channels * (seed % 6 == 0 ? 2 : 1);
    check_floats(seed, a,
                 {r.values(g.with(r.from(1, 2), channels)), r.values(g.weights(0, out)),
                  r.half() ? r.values({out}) : Tensor{}});
  }
}

TEST(Random, ConvTranspose) {
  int taken = 0;
  for (uint64_t seed = 0; seed < 50; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    const bool long_filter = seed % 5 == 0;  // longer than the input
    Geometry g(r, axes, long_filter ? 12 : 4, 2);
    if (long_filter)
      for (int64_t& n : g.in) n = r.from(1, 3);
    ConvTransposeAttrs a;
    a.strides = g.strides, a.dilations = g.dilations;
    for (int i = 0; i < 2 * axes; ++i)
      a.pads.push(r.half() ? 0 : r.from(0, (g.kernel[i % axes] - 1) / (long_filter ? 2 : 1)));
    for (int i = 0; i < axes; ++i)
      a.output_padding.push(r.from(0, std::min<int64_t>(g.strides[i], g.dilations[i]) - 1));
    a.group = r.from(0, 4) == 0 ? 2 : 1;
    clamp_some(r, a);
    const int64_t in = r.from(1, 60), out = r.from(1, 40);
    taken += check_some(seed, a,
                        {r.values(g.with(r.from(1, 2), in * a.group)), r.values(g.weights(out * a.group, in)),
                         r.half() ? r.values({out * a.group}) : Tensor{}});
  }
  expect_taken(taken, 44 / static_cast<int>(kSeedStep));  // a filter of 120 taps is too long for it
}

TEST(Random, Products) {
  for (uint64_t seed = 0; seed < 20; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    const int64_t m = r.from(1, 20), k = r.from(1, 120), n = r.from(1, 70);
    FullyConnectedAttrs full;
    clamp_some(r, full);
    check_floats(seed, full, {r.values({2, m, k}), r.values({n, k}), r.half() ? r.values({n}) : Tensor{}});
    MatMulAttrs a;
    a.transpose_b = seed % 2;
    const Shape b = a.transpose_b ? Shape{n, k} : Shape{k, n};
    check_floats(seed, a, {r.values({3, m, k}), r.values(b)});
    Shape batched = {r.half() ? 2 : 1, r.half() ? 3 : 1};
    batched.insert(batched.end(), b.begin(), b.end());
    check_floats(seed, a, {r.values({2, 3, m, k}), r.values(batched)});
    run_op(a, {r.values({m, k}), r.values(batched)});
    EXPECT_TRUE(tested_backend("xnnpack") == nullptr ||
                takes("xnnpack", a, {r.values({m, k}), r.values(batched)}, {.constants = false}));
  }
}

TEST(Random, Pooling) {
  int taken = 0, asked = 0;
  for (uint64_t seed = 0; seed < 60; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    const int axes = seed % 4 == 0 ? 1 : 2;
    Geometry g(r, axes, 5, seed % 8 == 1 ? 2 : 1);
    for (int i = 0; i < axes; ++i) g.strides[i] = std::min(g.strides[i], g.kernel[i]);
    for (int i = 0; i < 2 * axes; ++i) g.pads[i] = std::min(g.pads[i], g.kernel[i % axes] - 1);
    const std::vector<Tensor> x = {r.values(g.with(r.from(1, 2), r.from(1, 80)))};
    const int64_t ceil = seed % 3 == 0;
    MaxPoolAttrs most;
    most.kernel = g.kernel, most.strides = g.strides, most.dilations = g.dilations, most.pads = g.pads;
    most.ceil_mode = ceil;
    taken += check_some(seed, most, x);
    AvgPoolAttrs mean;
    mean.kernel = g.kernel, mean.strides = g.strides, mean.dilations = g.dilations, mean.pads = g.pads;
    mean.ceil_mode = ceil;
    taken += check_some(seed, mean, x);
    mean.count_include_pad = 1;
    taken += check_some(seed, mean, x);
    asked += 3;
  }
  expect_taken(taken, asked / 2);
}

TEST(Random, Resize) {
  for (uint64_t seed = 0; seed < 60; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
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
    const std::vector<Tensor> x = {r.values({2, h, w, c})};
    check_taken_by("xnnpack", a, x);
    if (seed % 3 != 2 && (h > 1 || a.sizes[1] == 1)) check_half(a, x);
  }
}

template <class A>
void check_random_pairs() {
  for (uint64_t seed = 0; seed < 30; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    Shape a, b;
    const int64_t rank = r.from(1, 6);
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t n = r.from(1, 5), kind = r.from(0, 3);
      a.push_back(kind == 1 ? 1 : n), b.push_back(kind == 2 ? 1 : n);
    }
    if (r.half()) b.erase(b.begin(), b.begin() + r.from(0, rank));
    const std::vector<Tensor> operands = {r.values(a), noise<float>(b, 0.5, 2, seed)};
    const bool float16_only = A::kOp == Op::kMin || A::kOp == Op::kMax;  // of XNNPACK's
    if (!float16_only) check_taken_by("xnnpack", A{}, operands);
    if (seed < kHalfSeeds) check_half(A{}, operands);
  }
}
TEST(Random, Arithmetic) {
  check_random_pairs<AddAttrs>();
  check_random_pairs<SubAttrs>();
  check_random_pairs<MulAttrs>();
  check_random_pairs<DivAttrs>();
  check_random_pairs<MinAttrs>();
  check_random_pairs<MaxAttrs>();
}

TEST(Random, PRelu) {
  for (uint64_t seed = 0; seed < 20; seed += kSeedStep) {
    RandomCall r(seed);
    const int64_t c = r.from(1, 70);
    const Shape slopes = seed % 3 == 0 ? Shape{1} : seed % 3 == 1 ? Shape{c} : Shape{1, 1, c};
    check_taken_by("xnnpack", PReluAttrs{}, {r.values({2, 3, 5, c}), r.values(slopes)});
  }
}

// What is only moved needs no float16 arithmetic.
TEST(Random, Moves) {
  for (uint64_t seed = 0; seed < 40; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    RandomCall r(seed);
    Shape dims;
    PadAttrs pad;
    TransposeAttrs transpose;
    const int64_t rank = r.from(1, 5);
    for (int64_t i = 0; i < rank; ++i) dims.push_back(r.from(1, 9)), transpose.perm.push(i);
    std::shuffle(transpose.perm.items, transpose.perm.items + rank, r.engine);
    for (int64_t i = 0; i < 2 * rank; ++i) pad.pads.push(r.half() ? 0 : r.from(0, 3));
    const std::vector<Tensor> x = {r.values(dims)},
                              filled = {x[0], r.half() ? tensor<float>({}, {2.5f}) : Tensor{}};
    check_taken_by("xnnpack", pad, filled);
    check_taken_by("xnnpack", pad, halved(filled));
    check_taken_by("simd", transpose, x);
    check_taken_by("xnnpack", transpose, halved(x));
  }
}

TEST(Random, CastsToAndFromFloat16) {
  std::vector<float> values = {65519, 65520, -1e9f, 1e-8f, -0.0f, 0x1p-25f, 0x1.004p-14f};
  const Tensor random = noise<float>({1000}, -70000, 70000);
  for (const float v : random.values<float>()) values.push_back(v), values.push_back(v * 0x1p-30f);
  const Tensor wide = tensor<float>({static_cast<int64_t>(values.size())}, values), narrow = finite_halves();
  check_taken_by("xnnpack", CastAttrs{.to = static_cast<int64_t>(DType::kFloat16)}, {wide});
  check_taken_by("xnnpack", CastAttrs{.to = static_cast<int64_t>(DType::kFloat32)}, {narrow});
}

TEST(Random, FunctionsOfEveryFloat16Number) {
  const std::vector<Tensor> all = {finite_halves()};
  check_half(AbsAttrs{}, all);
  check_half(NegAttrs{}, all);
  check_half(ClampAttrs{.min = -1, .max = 6}, all);
  check_half(LeakyReluAttrs{.alpha = 0.125}, all);
  check_half(SigmoidAttrs{}, all);
  check_half(TanhAttrs{}, all);
  check_half(HardSwishAttrs{}, all);
}

}  // namespace
}  // namespace sinter::test
