// Resize, GridSample, RoiAlign. Expected numbers come from the ONNX reference implementation.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/op_enums.h"
#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

ResizeAttrs resize(ResizeMode mode, IntList sizes, FloatList scales,
                   ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel) {
  return {.mode = static_cast<int64_t>(mode),
          .coordinates = static_cast<int64_t>(coordinates),
          .sizes = sizes,
          .scales = scales};
}
ResizeAttrs shrink(ResizeMode mode, ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel) {
  return resize(mode, {1, 2, 2, 1}, {1, 0.6f, 0.6f, 1}, coordinates);
}

TEST(Resize, InterpolatesInEveryCoordinateMode) {
  const Tensor x = iota<float>({1, 4, 4, 1}, 1);
  const auto with = [&](ResizeCoordinates c) { return run_op(shrink(ResizeMode::kLinear, c), {x})[0]; };
  expect_near(with(ResizeCoordinates::kHalfPixel),
              tensor<float>({1, 2, 2, 1}, {2.666667, 4.333333, 9.333333, 11}));
  expect_near(with(ResizeCoordinates::kHalfPixelSymmetric),
              tensor<float>({1, 2, 2, 1}, {4.333333, 6, 11, 12.66667}));
  expect_near(with(ResizeCoordinates::kPytorchHalfPixel),
              tensor<float>({1, 2, 2, 1}, {2.666667, 4.333333, 9.333333, 11}));
  expect_near(with(ResizeCoordinates::kAlignCorners),
              tensor<float>({1, 2, 2, 1}, {1, 3.142857, 9.571428, 11.71428}), 1e-6);
  expect_near(with(ResizeCoordinates::kAsymmetric),
              tensor<float>({1, 2, 2, 1}, {1, 2.666667, 7.666667, 9.333333}));
}

// The coordinates are 1 + 2e-16, 3 and 5: neighbours and weights must agree on which side of 1 the first one
// is (ONNX's reference implementation reads element 0 here).
TEST(Resize, StaysContinuousBesideIntegers) {
  for (const auto mode : {ResizeMode::kNearest, ResizeMode::kLinear, ResizeMode::kCubic}) {
    ResizeAttrs a = resize(mode, {3}, {0.5}, ResizeCoordinates::kHalfPixelSymmetric);
    a.nearest_mode = static_cast<int64_t>(NearestMode::kCeil);
    expect_near(run_op(a, {iota<float>({7})})[0], tensor<float>({3}, {1, 3, 5}));
  }
}

TEST(Resize, CropsAndExtrapolates) {
  ResizeAttrs a =
      resize(ResizeMode::kLinear, {1, 3, 3, 1}, {1, 0.75, 0.75, 1}, ResizeCoordinates::kTfCropAndResize);
  a.roi = {0, 0.4f, 0.6f, 0, 1, 1.2f, 1.7f, 1};
  a.extrapolation_value = 10;
  expect_near(run_op(a, {iota<float>({1, 4, 4, 1}, 1)})[0],
              tensor<float>({1, 3, 3, 1}, {7.6, 10, 10, 12.4, 10, 10, 10, 10, 10}));
  a.mode = static_cast<int64_t>(ResizeMode::kNearest);
  expect_equal(run_op(a, {iota<int8_t>({1, 4, 4, 1}, 1)})[0],
               tensor<int8_t>({1, 3, 3, 1}, {7, 10, 10, 11, 10, 10, 10, 10, 10}));
}

TEST(Resize, Cubic) {
  const Tensor x = iota<float>({1, 4, 4, 1}, 1);
  expect_near(run_op(resize(ResizeMode::kCubic, {1, 6, 6, 1}, {1, 1.5, 1.5, 1}), {x})[0],
              tensor<float>({1, 6, 6, 1},
                            {0.5659727, 1.059028, 1.865743, 2.439816, 3.246529, 3.739587, 2.538196, 3.03125,
                             3.837965,  4.412038, 5.21875,  5.711808, 5.765054, 6.258108, 7.064825, 7.638898,
                             8.445609,  8.938668, 8.061346, 8.554399, 9.361116, 9.935189, 10.7419,  11.23496,
                             11.2882,   11.78125, 12.58797, 13.16204, 13.96875, 14.46181, 13.26043, 13.75348,
                             14.5602,   15.13427, 15.94098, 16.43404}),
              2e-6);
  ResizeAttrs a = shrink(ResizeMode::kCubic);
  a.exclude_outside = 1;
  a.cubic_coeff_a = -0.5;
  expect_near(run_op(a, {x})[0], tensor<float>({1, 2, 2, 1}, {2.206898, 3.965518, 9.241382, 11}), 1e-6);
}

TEST(Resize, Antialiases) {
  const Tensor x = iota<float>({1, 4, 4, 1}, 1);
  ResizeAttrs a = shrink(ResizeMode::kLinear);
  a.antialias = 1;
  expect_near(run_op(a, {x})[0], tensor<float>({1, 2, 2, 1}, {2.875, 4.5, 9.375, 11}));
  a.mode = static_cast<int64_t>(ResizeMode::kCubic);
  expect_near(run_op(a, {x})[0], tensor<float>({1, 2, 2, 1}, {2.51807, 4.285886, 9.589335, 11.35715}), 1e-6);
}

TEST(Resize, ChoosesTheNearest) {
  const auto with = [&](NearestMode n, ResizeAttrs a) {
    a.nearest_mode = static_cast<int64_t>(n);
    return run_op(a, {iota<uint8_t>({4})})[0];
  };
  const ResizeAttrs corners = resize(ResizeMode::kNearest, {8}, {2}, ResizeCoordinates::kAlignCorners),
                    half = resize(ResizeMode::kNearest, {6}, {1.5});
  expect_equal(with(NearestMode::kRoundPreferFloor, corners), tensor<uint8_t>({8}, {0, 0, 1, 1, 2, 2, 3, 3}));
  expect_equal(with(NearestMode::kRoundPreferFloor, half), tensor<uint8_t>({6}, {0, 0, 1, 2, 2, 3}));
  expect_equal(with(NearestMode::kRoundPreferCeil, half), tensor<uint8_t>({6}, {0, 1, 1, 2, 3, 3}));
  expect_equal(with(NearestMode::kFloor, corners), tensor<uint8_t>({8}, {0, 0, 0, 1, 1, 2, 2, 3}));
  expect_equal(with(NearestMode::kFloor, half), tensor<uint8_t>({6}, {0, 0, 1, 1, 2, 3}));
  expect_equal(with(NearestMode::kCeil, corners), tensor<uint8_t>({8}, {0, 1, 1, 2, 2, 3, 3, 3}));
  expect_equal(with(NearestMode::kCeil, half), tensor<uint8_t>({6}, {0, 1, 2, 2, 3, 3}));
  // Every width, all axes, exactly.
  const int64_t big = (int64_t{1} << 60) + 1;
  expect_equal(
      run_op(resize(ResizeMode::kNearest, {2, 4}, {2, 2}), {tensor<int64_t>({1, 2}, {big, -big})})[0],
      tensor<int64_t>({2, 4}, {big, big, -big, -big, big, big, -big, -big}));
  expect_equal(run_op(resize(ResizeMode::kNearest, {1, 2, 4}, {1, 2, 2}),
                      {bits_tensor<uint16_t>(DType::kBFloat16, {1, 1, 2}, {1, 2})})[0],
               bits_tensor<uint16_t>(DType::kBFloat16, {1, 2, 4}, {1, 1, 2, 2, 1, 1, 2, 2}));
}

TEST(Resize, InterpolatesAnyAxes) {
  // All three axes; channels after and before the resized ones.
  expect_near(
      run_op(resize(ResizeMode::kLinear, {3, 3, 3}, {1.5, 1.5, 1.5}, ResizeCoordinates::kAlignCorners),
             {iota<float>({2, 2, 2})})[0],
      tensor<float>({3, 3, 3}, {0, 0.5, 1,   1, 1.5, 2,   2, 2.5, 3,   2, 2.5, 3,   3, 3.5,
                                4, 4,   4.5, 5, 4,   4.5, 5, 5,   5.5, 6, 6,   6.5, 7}));
  expect_near(run_op(resize(ResizeMode::kLinear, {3, 2}, {1.5, 1}, ResizeCoordinates::kAlignCorners),
                     {tensor<float>({2, 2}, {0, 10, 2, 30})})[0],
              tensor<float>({3, 2}, {0, 10, 1, 20, 2, 30}));
  expect_near(run_op(resize(ResizeMode::kLinear, {2, 3}, {1, 1.5}, ResizeCoordinates::kAlignCorners),
                     {tensor<double>({2, 2}, {0, 10, 2, 30})})[0],
              tensor<double>({2, 3}, {0, 5, 10, 2, 16, 30}));
  // Integers are rounded to even and saturate.
  expect_equal(run_op(resize(ResizeMode::kLinear, {3}, {1.5}, ResizeCoordinates::kAlignCorners),
                      {tensor<uint8_t>({2}, {0, 5})})[0],
               tensor<uint8_t>({3}, {0, 2, 5}));
  // Before rounding: 0, -4.5, -13.5, 29, 99, 141.5, 132.5, 128.
  expect_equal(run_op(resize(ResizeMode::kCubic, {8}, {2}), {tensor<int16_t>({4}, {0, 0, 128, 128})})[0],
               tensor<int16_t>({8}, {0, -4, -14, 29, 99, 142, 132, 128}));
  expect_equal(run_op(resize(ResizeMode::kCubic, {8}, {2}), {tensor<uint8_t>({4}, {0, 0, 255, 255})})[0],
               tensor<uint8_t>({8}, {0, 0, 0, 58, 197, 255, 255, 255}));
  expect_equal(run_op(resize(ResizeMode::kLinear, {}, {}), {iota<float>({}, 3)})[0], iota<float>({}, 3));
  expect_equal(run_op(resize(ResizeMode::kLinear, {0, 4}, {1, 2}), {iota<float>({0, 2})})[0],
               iota<float>({0, 4}));
  expect_equal(run_op(resize(ResizeMode::kLinear, {2, 0}, {1, 0.1}), {iota<float>({2, 2})})[0],
               iota<float>({2, 0}));
}

// Axes before, between and after those that change; more taps than two; rows that are combined or only moved.
TEST(Resize, IsTakenByTheSimdBackend) {
  struct Case {
    Shape x;
    IntList sizes;
  };
  const Case cases[] = {{{1, 3, 32, 32}, {1, 3, 30, 30}}, {{2, 5, 7, 3}, {2, 10, 14, 3}},
                        {{1, 6, 5, 20}, {1, 9, 4, 20}},   {{1, 4, 4, 70}, {1, 8, 8, 70}},
                        {{2, 3, 4, 5}, {2, 3, 9, 5}},     {{2, 3, 4}, {5, 3, 4}},
                        {{3, 4, 5}, {2, 7, 11}},          {{7}, {16}},
                        {{1, 40, 90, 2}, {1, 80, 180, 2}}};
  for (const Case& c : cases)
    for (const auto coordinates :
         {ResizeCoordinates::kHalfPixel, ResizeCoordinates::kAlignCorners, ResizeCoordinates::kAsymmetric}) {
      ResizeAttrs a = resize(ResizeMode::kNearest, c.sizes, {}, coordinates);
      for (size_t i = 0; i < c.x.size(); ++i)
        a.scales.push(static_cast<double>(c.sizes[static_cast<int>(i)]) / static_cast<double>(c.x[i]));
      SCOPED_TRACE(testing::PrintToString(c.x) + ", coordinates " + std::to_string(a.coordinates));
      check_taken_by("simd", a, {noise<uint8_t>(c.x, 0, 255)});
      check_taken_by("simd", a, {noise<int16_t>(c.x, 0, 255)});
      check_taken_by("simd", a, {noise<float>(c.x, -3, 3)});
      check_taken_by("simd", a, {noise<int64_t>(c.x, 0, 255)});
      a.mode = static_cast<int64_t>(ResizeMode::kLinear);
      check_taken_by("simd", a, {noise<float>(c.x, -3, 3)});
      a.antialias = 1;
      check_taken_by("simd", a, {noise<float>(c.x, -3, 3)});
      a.mode = static_cast<int64_t>(ResizeMode::kCubic), a.antialias = 0, a.exclude_outside = 1;
      check_taken_by("simd", a, {noise<float>(c.x, -3, 3)});
    }
}

// An element whose weight is zero does not matter, even if it is not finite.
TEST(Resize, IgnoresElementsOfWeightZero) {
  const Tensor x = tensor<float>({2, 2}, {1, kInf, kNan, -kInf});
  check_taken_by("simd", resize(ResizeMode::kLinear, {3, 3}, {1.5, 1.5}, ResizeCoordinates::kAlignCorners),
                 {x});
  check_taken_by("simd", resize(ResizeMode::kLinear, {2, 2}, {1, 1.5}, ResizeCoordinates::kAsymmetric), {x});
}

TEST(Resize, Refuses) {
  const Tensor x = iota<float>({2, 2});
  const auto linear = [](IntList sizes, FloatList scales) {
    return resize(ResizeMode::kLinear, sizes, scales);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_refused(linear({4}, {1, 2}), {x});
  expect_refused(linear({2, 4}, {1}), {x});
  expect_refused(linear({2, -4}, {1, 2}), {x});
  expect_refused(linear({2, 4}, {1, 0}), {x});
  expect_refused(linear({2, 4}, {1, -2}), {x});
  expect_refused(linear({2, 4}, {1, nan}), {x});
  expect_refused(linear({2, 4}, {1, kInfinity}), {x});
  expect_refused(linear({INT64_MAX, INT64_MAX}, {1, 1}), {x});
  expect_refused(linear({int64_t{1} << 39, int64_t{1} << 39}, {1, 1}), {x});
  expect_refused(linear({4, 2}, {2, 1}), {iota<float>({0, 2})});
  expect_refused(linear({2, 4}, {1, 2}), {iota<bool>({2, 2})});
  ResizeAttrs a = resize(ResizeMode::kNearest, {2, 4}, {1, 2});
  a.antialias = 1;
  expect_refused(a, {x});
  a = linear({2, 4}, {1, 1e-9});
  a.antialias = 1;
  expect_refused(a, {x});
  a = resize(ResizeMode::kLinear, {2, 4}, {1, 2}, ResizeCoordinates::kTfCropAndResize);
  expect_refused(a, {x});
  a.roi = {0, 0, 1, nan};
  expect_refused(a, {x});
  a.roi = {0, 0, 1, 1};
  a.mode = 3;
  expect_refused(a, {x});
}

// Absurd but accepted attributes stay inside the input.
TEST(Resize, SurvivesAbsurdScales) {
  for (const auto mode : {ResizeMode::kNearest, ResizeMode::kLinear, ResizeMode::kCubic})
    for (const double scale : {1e-300, 1e300}) {
      const auto y =
          run_op(resize(mode, {5}, {scale}, ResizeCoordinates::kHalfPixelSymmetric), {full<float>({3}, 2)});
      for (const float v : y[0].values<float>()) EXPECT_NEAR(v, 2, 1e-3);
    }
}

GridSampleAttrs grid(SampleMode mode, SamplePadding padding, int64_t align) {
  return {.mode = static_cast<int64_t>(mode),
          .padding_mode = static_cast<int64_t>(padding),
          .align_corners = align};
}

TEST(GridSample, TwoAxes) {
  const Tensor x = iota<float>({1, 2, 3, 1});
  const Tensor at = tensor<float>({1, 2, 3, 2}, {-1, -1, -0.5, 0.2, 0, 0, 0.7, 0.9, 1.3, -1.4, -2.2, 3});
  const auto expect = [&](SampleMode mode, SamplePadding padding, int64_t align,
                          std::initializer_list<float> y) {
    expect_near(run_op(grid(mode, padding, align), {x, at})[0], tensor<float>({1, 2, 3, 1}, y), 3e-6, 1e-6);
  };
  using enum SamplePadding;
  expect(SampleMode::kLinear, kZeros, 0, {0, 2.35, 2.5, 2.849999, 0.01, 0});
  expect(SampleMode::kLinear, kZeros, 1, {0, 2.3, 2.5, 4.55, 1.12, 0});
  expect(SampleMode::kLinear, kBorder, 0, {0, 2.35, 2.5, 5, 2, 3});
  expect(SampleMode::kLinear, kBorder, 1, {0, 2.3, 2.5, 4.55, 2, 3});
  expect(SampleMode::kLinear, kReflection, 0, {0, 2.35, 2.5, 5, 2, 1.3});
  expect(SampleMode::kLinear, kReflection, 1, {0, 2.3, 2.5, 4.55, 2.3, 1.2});
  expect(SampleMode::kNearest, kZeros, 0, {0, 3, 1, 5, 0, 0});
  expect(SampleMode::kNearest, kZeros, 1, {0, 3, 1, 5, 2, 0});
  expect(SampleMode::kNearest, kBorder, 0, {0, 3, 1, 5, 2, 3});
  expect(SampleMode::kNearest, kReflection, 0, {0, 3, 1, 5, 2, 1});
  expect(SampleMode::kNearest, kReflection, 1, {0, 3, 1, 5, 2, 1});
  expect(SampleMode::kCubic, kZeros, 0, {-0.1875, 2.978316, 2.96875, 3.271679, 0.005797281, 0});
  expect(SampleMode::kCubic, kZeros, 1, {0, 2.841875, 2.96875, 5.372134, 1.071406, 0});
  expect(SampleMode::kCubic, kBorder, 0, {-0.375, 2.354407, 2.5, 5.357842, 1.981532, 3});
  expect(SampleMode::kCubic, kBorder, 1, {0, 2.24225, 2.5, 4.650313, 1.822251, 3});
  expect(SampleMode::kCubic, kReflection, 0, {-0.75, 2.354407, 2.5, 5.575624, 1.833126, 0.8267505});
  expect(SampleMode::kCubic, kReflection, 1, {0, 2.256499, 2.5, 4.856748, 2.190501, 1.296});
}

TEST(GridSample, ThreeAxesAndChannels) {
  const Tensor x = iota<float>({1, 2, 2, 2, 1}),
               at = tensor<float>({1, 1, 1, 3, 3}, {0, 0, 0, -0.5, 0.5, 1, 1.5, -1, 0});
  expect_near(run_op(grid(SampleMode::kLinear, SamplePadding::kZeros, 0), {x, at})[0],
              tensor<float>({1, 1, 1, 3, 1}, {3.5, 3, 0}));
  expect_near(run_op(grid(SampleMode::kLinear, SamplePadding::kBorder, 0), {x, at})[0],
              tensor<float>({1, 1, 1, 3, 1}, {3.5, 6, 3}));
  expect_near(run_op(grid(SampleMode::kLinear, SamplePadding::kReflection, 0), {x, at})[0],
              tensor<float>({1, 1, 1, 3, 1}, {3.5, 6, 3}));
  expect_equal(run_op(grid(SampleMode::kLinear, SamplePadding::kZeros, 1),
                      {tensor<double>({2, 1, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}),
                       tensor<float>({2, 1, 1, 2}, {0, 0, 1, 0})})[0],
               tensor<double>({2, 1, 1, 2}, {1, 2, 6, 7}));
  expect_equal(
      run_op(grid(SampleMode::kLinear, SamplePadding::kBorder, 0), {x, iota<float>({1, 0, 1, 3, 3})})[0],
      iota<float>({1, 0, 1, 3, 1}));
}

TEST(GridSample, SurvivesAbsurdCoordinates) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = iota<float>({1, 2, 2, 1}, 1),
               at = tensor<float>({1, 1, 4, 2}, {nan, 0, inf, 0, -inf, -inf, 1e30f, 1e30f});
  for (const auto mode : {SampleMode::kLinear, SampleMode::kNearest, SampleMode::kCubic})
    for (const int64_t align : {0, 1}) {
      const auto zeros = run_op(grid(mode, SamplePadding::kZeros, align), {x, at})[0].values<float>();
      EXPECT_TRUE(std::isnan(zeros[0]));
      EXPECT_EQ(zeros[1], 0);
      EXPECT_EQ(zeros[2], 0);
      EXPECT_EQ(zeros[3], 0);
      const auto border = run_op(grid(mode, SamplePadding::kBorder, align), {x, at})[0].values<float>();
      EXPECT_TRUE(std::isnan(border[0]));
      EXPECT_EQ(border[2], 1);
      EXPECT_EQ(border[3], 4);
      const auto reflected =
          run_op(grid(mode, SamplePadding::kReflection, align), {x, at})[0].values<float>();
      EXPECT_TRUE(std::isnan(reflected[1]));
      EXPECT_TRUE(reflected[3] >= 0 && reflected[3] <= 5) << reflected[3];
    }
}

TEST(GridSample, Refuses) {
  const Tensor x = iota<float>({1, 2, 2, 1}), at = iota<float>({1, 1, 1, 2});
  const GridSampleAttrs a = grid(SampleMode::kLinear, SamplePadding::kBorder, 0);
  expect_refused(a, {x, iota<float>({1, 1, 1, 3})});
  expect_refused(a, {x, iota<float>({2, 1, 1, 2})});
  expect_refused(a, {x, iota<float>({1, 1, 2})});
  expect_refused(a, {x, iota<int32_t>({1, 1, 1, 2})});
  expect_refused(a, {iota<float>({1, 0, 2, 1}), at});
  expect_refused(a, {iota<int8_t>({1, 2, 2, 1}), at});
  expect_refused(GridSampleAttrs{.mode = 3}, {x, at});
  expect_refused(GridSampleAttrs{.padding_mode = -1}, {x, at});
}

TEST(RoiAlign, PoolsRegions) {
  const Tensor x =
      tensor<float>({1, 4, 5, 1}, {0,        0.2,      0.5656854, 1.039231, 1.6,      2.236068, 2.939388,
                                   3.704051, 4.525483, 5.4,       6.324555, 7.296575, 8.313845, 9.374434,
                                   10.47664, 11.61895, 12.8,      14.01856, 15.27351, 16.56382});
  const Tensor rois = tensor<float>({2, 4}, {0, 0, 3, 3, 1.5, 0.5, 6, 9}),
               images = tensor<int64_t>({2}, {0, 0});
  RoiAlignAttrs a{.out_height = 2, .out_width = 2, .spatial_scale = 0.75};
  expect_near(run_op(a, {x, rois, images})[0],
              tensor<float>({2, 2, 2, 1},
                            {0.4335678, 0.7591819, 3.217144, 3.986091, 5.863455, 7.377135, 3.3428, 3.869953}),
              2e-6);
  a.half_pixel = 0;
  expect_near(run_op(a, {x, rois, images})[0],
              tensor<float>({2, 2, 2, 1},
                            {1.529542, 2.146607, 5.546432, 6.580056, 8.417389, 10.11889, 3.496897, 4.017467}),
              2e-6);
  a.mode = static_cast<int64_t>(RoiAlignMode::kMax);
  a.sampling_ratio = 2;
  expect_near(run_op(a, {x, rois, images})[0],
              tensor<float>({2, 2, 2, 1}, {2.092592, 3.027628, 5.964095, 7.802349, 6.540397, 12.68167, 0, 0}),
              2e-6);
  a.half_pixel = 1;
  expect_near(run_op(a, {x, rois, tensor<int32_t>({2}, {0, 0})})[0],
              tensor<float>({2, 2, 2, 1}, {0.7686484, 0.9156882, 2.964635, 3.099619, 5.437693, 5.055694,
                                           12.48528, 11.21648}),
              2e-6);
  expect_equal(run_op(a, {x, iota<float>({0, 4}), iota<int64_t>({0})})[0], iota<float>({0, 2, 2, 1}));
}

TEST(RoiAlign, ReadsItsOwnImageAndAllChannels) {
  Tensor x = full<float>({2, 3, 3, 70}, 1);
  for (size_t i = 0; i < 630; ++i) {
    const float v = 5;
    std::memcpy(x.bytes.data() + (630 + i) * 4, &v, 4);
  }
  const auto y = run_op(RoiAlignAttrs{}, {x, tensor<float>({2, 4}, {0.5, 0.5, 2.5, 2.5, 0.5, 0.5, 2.5, 2.5}),
                                          tensor<int64_t>({2}, {1, 0})});
  const auto v = y[0].values<float>();
  ASSERT_EQ(v.size(), 140u);
  for (size_t c = 0; c < 70; ++c) {
    EXPECT_NEAR(v[c], 5, 1e-5);
    EXPECT_NEAR(v[70 + c], 1, 1e-5);
  }
}

TEST(RoiAlign, Refuses) {
  const Tensor x = iota<float>({1, 3, 3, 1}), roi = iota<float>({1, 4}), image = iota<int64_t>({1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const RoiAlignAttrs a;
  expect_run_fails(Code::kOutOfRange, a, {x, roi, tensor<int64_t>({1}, {1})});
  expect_run_fails(Code::kOutOfRange, a, {x, roi, tensor<int64_t>({1}, {-1})});
  expect_run_fails(Code::kOutOfRange, a, {x, tensor<float>({1, 4}, {0, 0, 1e9, 1}), image});
  expect_run_fails(Code::kOutOfRange, a, {x, tensor<float>({1, 4}, {0, nan, 1, 1}), image});
  expect_refused(a, {iota<float>({3, 3, 1}), roi, image});
  expect_refused(a, {x, iota<float>({1, 5}), image});
  expect_refused(a, {x, roi, iota<int64_t>({2})});
  expect_refused(a, {x, roi, iota<float>({1})});
  expect_refused(a, {iota<float>({1, 0, 3, 1}), roi, image});
  expect_refused(RoiAlignAttrs{.out_height = 0}, {x, roi, image});
  expect_refused(RoiAlignAttrs{.out_height = INT64_MAX, .out_width = 4}, {x, roi, image});
  expect_refused(RoiAlignAttrs{.sampling_ratio = -1}, {x, roi, image});
  expect_refused(RoiAlignAttrs{.spatial_scale = kInfinity}, {x, roi, image});
}

}  // namespace
}  // namespace sinter::test
