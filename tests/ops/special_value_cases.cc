// NaN, infinities and numbers below the smallest normal one: every backend gives what the reference gives, in
// float64 and then rounded once.
#include <algorithm>
#include <cmath>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/instruction_sets.h"
#include "tests/op_harness/op_test.h"

namespace sinter::test {
namespace {

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

TEST(SpecialValues, NanThroughConvolutions) {
  for (const float special : {kNan, kInf, -kInf})
    for (int clamp = 0; clamp < 3; ++clamp)
      for (const int64_t in : {1, 4, 7})
        for (const int64_t out : {1, 3, 16, 40}) {
          SCOPED_TRACE(testing::Message() << special << ", clamp " << clamp << ", " << in << " to " << out);
          const Tensor x = sprinkled({1, 6, 7, in}, special, in + out, 31);
          check_taken_by("xnnpack", clamped(conv_attrs(1), clamp),
                         {x, noise<float>({out, 3, 3, in}, 0.25, 1), Tensor{}});
          check_taken_by("xnnpack", clamped(conv_attrs(0), clamp), {x, noise<float>({out, 1, 1, in}, -1, 1)});
          check_taken_by("xnnpack", clamped(transposed_attrs(), clamp),
                         {x, noise<float>({out, 2, 2, in}, -1, 1)});
        }
}

TEST(SpecialValues, NanThroughDepthwiseConvolutions) {
  for (const float special : {kNan, kInf, -kInf})
    for (int clamp = 0; clamp < 3; ++clamp)
      for (const int64_t c : {1, 5, 16, 37})
        for (const int64_t k : {1, 2, 3, 5}) {
          SCOPED_TRACE(testing::Message()
                       << special << ", clamp " << clamp << ", " << c << " channels, kernel " << k);
          const Tensor x = sprinkled({1, 7, 7, c}, special, c + k, 23);
          check_taken_by("xnnpack", clamped(depthwise_attrs(k / 2), clamp),
                         {x, noise<float>({k, k, c}, 0.25, 1), noise<float>({c}, 0, 1)});
        }
}

TEST(SpecialValues, NanThroughProducts) {
  for (const float special : {kNan, kInf, -kInf})
    for (const int64_t k : {1, 5, 8, 19})
      for (const int64_t n : {1, 2, 3, 17, 40}) {
        SCOPED_TRACE(testing::Message() << special << ", " << k << " to " << n);
        const Tensor x = sprinkled({5, k}, special, k / 2, 11), w = noise<float>({n, k}, 0.25, 1);
        for (int clamp = 0; clamp < 3; ++clamp)
          check_taken_by("xnnpack", clamped(FullyConnectedAttrs{}, clamp), {x, w, noise<float>({n}, 0, 1)});
        check_taken_by("xnnpack", MatMulAttrs{.transpose_b = 1}, {x, w});
      }
}

// A product with a weight of zero is NaN like any other.
TEST(SpecialValues, NanTimesZero) {
  for (const float special : {kNan, kInf})
    for (const int64_t out : {1, 2, 3, 20}) {
      const Tensor x = sprinkled({1, 4, 4, 5}, special, 4, 20);
      check_taken_by("xnnpack", conv_attrs(0), {x, full<float>({out, 1, 1, 5}, 0)});
      check_taken_by("xnnpack", conv_attrs(0), {x, full<float>({out, 2, 2, 5}, 0)});
      check_taken_by("xnnpack", FullyConnectedAttrs{}, {x, full<float>({out, 5}, 0)});
    }
}

TEST(SpecialValues, NanThroughPools) {
  for (const float special : {kNan, kInf, -kInf})
    for (const int64_t c : {1, 7, 33})
      for (const int64_t kernel : {2, 3, 5})
        for (const int64_t stride : {1, 2})
          for (const int64_t first : {0, 7, 19}) {
            SCOPED_TRACE(testing::Message() << special << ", " << c << " channels, kernel " << kernel);
            const Tensor x = sprinkled({1, 8, 9, c}, special, first, 13 * c);
            check_taken_by("xnnpack", pool_attrs<MaxPoolAttrs>(kernel, stride, kernel / 2), {x});
            check_taken_by("xnnpack", pool_attrs<MaxPoolAttrs>(kernel, stride, 0), {x});
            check_taken_by("xnnpack", pool_attrs<AvgPoolAttrs>(kernel, stride, kernel / 2), {x});
            check_taken_by("xnnpack", pool_attrs<AvgPoolAttrs>(kernel, stride, 0), {x});
          }
}

TEST(SpecialValues, NanThroughArithmetic) {
  const Tensor a = tensor<float>({3, 7}, {kNan, 1, kInf, -kInf, kNan,  0, 3, 1, 2, -1, -0.0f,
                                          kInf, 5, 6,    1,     -kNan, 2, 4, 8, 0, -4}),
               b = tensor<float>({7}, {1, kNan, 2, -2, kNan, 0, kInf}), one = tensor<float>({1}, {kNan});
  // XNNPACK takes the sign bit for "negative", so it also multiplies -0.0, which a slope that is not finite
  // makes NaN.
  const Tensor without_zeros =
      tensor<float>({2, 7}, {kNan, 1, kInf, -kInf, kNan, 2, 3, 1, -kNan, -1, -3, kInf, 5, 6});
  for (const Tensor& other : {b, one}) {
    for (int clamp = 0; clamp < 3; ++clamp) {
      const char* const taker = clamp == 0 ? "xnnpack" : "simd";
      check_taken_by(taker, clamped(AddAttrs{}, clamp), {a, other});
      check_taken_by(taker, clamped(SubAttrs{}, clamp), {a, other});
      check_taken_by(taker, clamped(MulAttrs{}, clamp), {a, other});
      check_taken_by(taker, clamped(DivAttrs{}, clamp), {a, other});
    }
    check_taken_by("xnnpack", PReluAttrs{}, {without_zeros, other});
    check_taken_by("simd", MaxAttrs{}, {a, other});
    check_taken_by("simd", MinAttrs{}, {a, other});
  }
  check_taken_by("simd", ClampAttrs{.min = -1, .max = 1}, {a});
  check_taken_by("simd", ClampAttrs{.min = 0, .max = kInfinity}, {a});
}

std::vector<float> first_of(const std::vector<Tensor>& results) { return results[0].values<float>(); }

// Values that no window of an output contains do not change a bit of it. inputs: those of the call; of the
// first one, one number at `place` becomes large, infinite and NaN.
template <class A>
void check_unread(const A& attrs, const std::vector<Tensor>& inputs, size_t place) {
  const auto with = [&](const Tensor& t, float value) {
    auto v = t.values<float>();
    v[place] = value;
    return tensor<float>(t.dims, v);
  };
  // Outputs that read the number are not 0 if it is the only one that is not.
  std::vector<Tensor> marks = {with(full<float>(inputs[0].dims, 0), 1)};
  for (size_t i = 1; i < inputs.size(); ++i) marks.push_back(full<float>(inputs[i].dims, i == 1 ? 1 : 0));
  const std::vector<float> reads = first_of(run_op(attrs, marks, {.backends = false}));
  const auto unread = std::count(reads.begin(), reads.end(), 0.0f);
  EXPECT_TRUE(unread > 0 && unread < std::ssize(reads)) << op_name(A::kOp);
  for (TestedBackend& tested : tested_backends()) {
    if (tested.has_device_memory() || !takes(tested.name(), attrs, inputs)) continue;
    const InstructionSets* sets = InstructionSets::of(tested.name());
    for (const char* set : sets != nullptr ? sets->names() : std::vector<const char*>{nullptr}) {
      EXPECT_TRUE(sets == nullptr || sets->limit(set));
      std::vector<Tensor> changed = inputs;
      const std::vector<float> clean = first_of(run_on(tested.name(), attrs, inputs));
      for (const float value : {1e8f, -1e30f, kInf, kNan}) {
        SCOPED_TRACE(testing::Message() << op_name(A::kOp) << ", " << tested.name() << ", "
                                        << (set != nullptr ? set : "") << ", " << value);
        changed[0] = with(inputs[0], value);
        const std::vector<float> got = first_of(run_on(tested.name(), attrs, changed));
        for (size_t i = 0; i < got.size(); ++i) {
          if (reads[i] == 0) {
            ASSERT_EQ(got[i], clean[i]) << i;
          }
        }
      }
    }
    if (sets != nullptr) sets->limit(nullptr);
  }
}

TEST(SpecialValues, StayInTheirWindows) {
  const auto number = [](const Shape& x, int64_t pixel, int64_t channel) {
    return static_cast<size_t>(pixel * x[3] + channel % x[3]);
  };
  for (const int64_t in : {1, 3, 8, 17})
    for (const int64_t out : {1, 4, 8, 37}) {
      const Shape x = {2, 9, 11, in};
      const Tensor image = noise<float>(x, -1, 1, 1), bias = noise<float>({out}, -1, 1, 3);
      const size_t place = number(x, 50, 1);
      check_unread(conv_attrs(0), {image, noise<float>({out, 1, 1, in}, -1, 1, 2), bias}, place);
      check_unread(conv_attrs(1), {image, noise<float>({out, 3, 3, in}, -1, 1, 2), bias}, place);
      ConvAttrs strided = conv_attrs(2);
      strided.strides = {2, 2}, strided.dilations = {1, 2};
      check_unread(strided, {image, noise<float>({out, 3, 3, in}, -1, 1, 2), bias}, place);
      check_unread(transposed_attrs(), {image, noise<float>({out, 3, 3, in}, -1, 1, 2), bias}, place);
    }
  for (const int64_t c : {1, 5, 16, 37}) {
    const Shape x = {2, 9, 11, c};
    const Tensor image = noise<float>(x, -1, 1, 1);
    const size_t place = number(x, 50, 2);
    for (const int64_t k : {2, 3, 5}) {
      check_unread(depthwise_attrs(k / 2), {image, noise<float>({k, k, c}, -1, 1, 2)}, place);
      for (const int64_t stride : {1, 2}) {
        check_unread(pool_attrs<AvgPoolAttrs>(k, stride, k / 2), {image}, place);
        check_unread(pool_attrs<MaxPoolAttrs>(k, stride, k / 2), {image}, place);
      }
    }
    ResizeAttrs resize;
    resize.mode = static_cast<int64_t>(ResizeMode::kLinear);
    resize.coordinates = static_cast<int64_t>(ResizeCoordinates::kHalfPixel);
    resize.sizes = {2, 18, 22, c}, resize.scales = {1, 2, 2, 1};
    check_unread(resize, {image}, place);
    ConvAttrs grouped = conv_attrs(1);
    grouped.group = 2;
    const Shape wide = {2, 9, 11, 2 * c};
    check_unread(grouped, {noise<float>(wide, -1, 1, 1), noise<float>({10, 3, 3, c}, -1, 1, 2)},
                 number(wide, 50, 2));
  }
}

#ifndef __arm__  // NEON of 32-bit ARM takes and gives zero for them; no option changes that.

// Of both signs, all below the smallest normal number, and multiples of 4 of the smallest of all.
Tensor subnormals(const Shape& dims) {
  std::vector<float> v(full<float>(dims, 0).values<float>());
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = std::ldexp(static_cast<float>(static_cast<int>(i * 7919 % 200001) - 100000), -147);
  return tensor<float>(dims, v);
}

TEST(SpecialValues, SubnormalsThroughArithmetic) {
  const Tensor x = subnormals({3, 5, 37});
  check_taken_by("xnnpack", AddAttrs{}, {x, subnormals({37})});
  check_taken_by("xnnpack", SubAttrs{}, {x, subnormals({5, 37})});
  check_taken_by("xnnpack", MulAttrs{}, {x, full<float>({37}, 0.5f)});
  check_taken_by("xnnpack", MulAttrs{}, {full<float>({5, 37}, 0x1p-70f), full<float>({37}, 0x1p-70f)});
  check_taken_by("xnnpack", DivAttrs{}, {x, full<float>({37}, 2)});
  check_taken_by("xnnpack", DivAttrs{}, {full<float>({5, 37}, 0x1p-70f), full<float>({37}, 0x1p70f)});
  check_taken_by("xnnpack", PReluAttrs{}, {x, full<float>({37}, 0.25f)});
  check_taken_by("xnnpack", PadAttrs{.pads = {0, 1, 0, 1, 0, 1}}, {x});
  check_taken_by("simd", MaxAttrs{}, {x, subnormals({37})});
  check_taken_by("simd", MinAttrs{}, {x, subnormals({37})});
  check_taken_by("simd", ClampAttrs{.min = 0, .max = 6}, {x});
  ResizeAttrs resize;
  resize.mode = static_cast<int64_t>(ResizeMode::kLinear);
  resize.coordinates = static_cast<int64_t>(ResizeCoordinates::kAlignCorners);
  resize.sizes = {1, 6, 10, 9}, resize.scales = {1, 2, 2, 1};
  check_taken_by("xnnpack", resize, {full<float>({1, 3, 5, 9}, 0x1p-140f)});
}

TEST(SpecialValues, SubnormalsThroughPools) {
  for (const int64_t c : {3, 19}) {
    const Tensor x = subnormals({1, 6, 6, c});
    for (const int64_t kernel : {2, 3, 4})
      check_taken_by("xnnpack", pool_attrs<MaxPoolAttrs>(kernel, 1, 0), {x});
    for (const int64_t kernel : {2, 4})
      check_taken_by("xnnpack", pool_attrs<AvgPoolAttrs>(kernel, 1, 0),
                     {full<float>({1, 6, 6, c}, 0x1p-140f)});
  }
}

// Weights of one: every sum has one term, or a few that add up exactly.
TEST(SpecialValues, SubnormalsThroughConvolutions) {
  for (const int64_t in : {1, 3, 8})
    for (const int64_t out : {1, 2, 16, 40}) {
      SCOPED_TRACE(testing::Message() << in << " to " << out);
      const Tensor x = subnormals({1, 5, 6, in});
      check_taken_by("xnnpack", conv_attrs(0), {x, full<float>({out, 1, 1, in}, 1)});
      check_taken_by("xnnpack", clamped(conv_attrs(1), 1), {x, full<float>({out, 3, 3, in}, 1)});
      check_taken_by("xnnpack", transposed_attrs(), {x, full<float>({out, 2, 2, in}, 1)});
      check_taken_by("xnnpack", FullyConnectedAttrs{}, {x, full<float>({out, in}, 1)});
      check_taken_by("xnnpack", MatMulAttrs{}, {x, full<float>({in, out}, 1)});
    }
  for (const int64_t c : {1, 7, 33})
    for (const int64_t k : {1, 2, 3, 5})
      check_taken_by("xnnpack", depthwise_attrs(k / 2),
                     {subnormals({1, 6, 6, c}), full<float>({k, k, c}, 1)});
}

#endif

}  // namespace
}  // namespace sinter::test
