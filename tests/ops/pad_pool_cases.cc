// Pad, MaxPool, AvgPool.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/core/op_enums.h"
#include "tests/op_harness/half_test.h"
#include "tests/ops/run_status.h"

namespace sinter::test {
namespace {

PadAttrs pad(IntList pads, PadMode mode = PadMode::kConstant) {
  return {.pads = pads, .mode = static_cast<int64_t>(mode)};
}

TEST(Pad, FillsWithAConstant) {
  expect_equal(run_op(pad({1, 0, 0, 2}), {iota<float>({2, 2}, 1), tensor<float>({}, {9})})[0],
               tensor<float>({3, 4}, {9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9}));
  expect_equal(run_op(pad({1, 1}), {tensor<int8_t>({1}, {5})})[0], tensor<int8_t>({3}, {0, 5, 0}));
  expect_equal(run_op(pad({2, 1}), {iota<int64_t>({0}), tensor<int64_t>({1}, {7})})[0],
               tensor<int64_t>({3}, {7, 7, 7}));
  expect_equal(run_op(pad({0, 2, 0, 0}), {iota<float>({0, 1})})[0], iota<float>({0, 3}));
  expect_equal(run_op(pad({}), {iota<float>({}, 4)})[0], iota<float>({}, 4));
  expect_equal(run_op(pad({0, 1}), {bits_tensor<uint16_t>(DType::kFloat16, {1}, {0x3c00}),
                                    bits_tensor<uint16_t>(DType::kFloat16, {}, {0x4000})})[0],
               bits_tensor<uint16_t>(DType::kFloat16, {2}, {0x3c00, 0x4000}));
}

// Pads longer than the axis go on with the pattern.
TEST(Pad, ContinuesThePattern) {
  const Tensor x = iota<float>({3});
  expect_equal(run_op(pad({5, 4}, PadMode::kReflect), {x})[0],
               tensor<float>({12}, {1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2}));
  expect_equal(run_op(pad({5, 4}, PadMode::kEdge), {x})[0],
               tensor<float>({12}, {0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2}));
  expect_equal(run_op(pad({5, 4}, PadMode::kWrap), {x})[0],
               tensor<float>({12}, {1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}));
  expect_equal(run_op(pad({2, 1}, PadMode::kReflect), {iota<float>({1}, 6)})[0], full<float>({4}, 6));
  expect_equal(run_op(pad({1, 1, 0, 1}, PadMode::kReflect), {iota<int32_t>({2, 2})})[0],
               tensor<int32_t>({3, 4}, {3, 2, 3, 2, 1, 0, 1, 0, 3, 2, 3, 2}));
}

// Element by element, as the modes are defined.
TEST(Pad, PatternsOfEveryLength) {
  const auto source = [](PadMode mode, int64_t i, int64_t n) {
    if (mode == PadMode::kEdge) return std::clamp<int64_t>(i, 0, n - 1);
    while (i < 0 || i >= n) {
      if (n == 1) return int64_t{0};
      if (mode == PadMode::kWrap)
        i += i < 0 ? n : -n;
      else
        i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
  };
  for (const PadMode mode : {PadMode::kEdge, PadMode::kReflect, PadMode::kWrap})
    for (int64_t n = 1; n <= 6; ++n)
      for (int64_t begin = 0; begin <= 13; begin += begin < 4 ? 1 : 3)
        for (int64_t end = 0; end <= 13; end += end < 4 ? 1 : 3) {
          SCOPED_TRACE(testing::Message() << begin << ", " << n << ", " << end);
          const Tensor x = noise<float>({2, n, 3}, -1, 1, static_cast<uint64_t>(n));
          Tensor want{DType::kFloat32, {2, begin + n + end, 3}, {}};
          for (int64_t b = 0; b < 2; ++b)
            for (int64_t i = -begin; i < n + end; ++i) {
              const auto at = x.bytes.begin() + 12 * (b * n + source(mode, i, n));
              want.bytes.insert(want.bytes.end(), at, at + 12);
            }
          expect_equal(run_op(pad({0, begin, 0, 0, end, 0}, mode), {x})[0], want);
        }
}

TEST(Pad, Refuses) {
  expect_refused(pad({1}), {iota<float>({2})});
  expect_refused(pad({-1, 0}), {iota<float>({2})});
  expect_refused(pad({INT64_MAX, 1}), {iota<float>({2})});
  expect_refused(pad({1, 0}, PadMode::kEdge), {iota<float>({0})});
  expect_refused(pad({1, 0}), {iota<float>({2}), tensor<double>({}, {1})});
  expect_refused(pad({1, 0}), {iota<float>({2}), iota<float>({2})});
  expect_refused(PadAttrs{.pads = {1, 0}, .mode = 4}, {iota<float>({2})});
  expect_run_fails(Code::kUnsupported, pad({1, 0}), {Tensor{DType::kUint4, {2}, std::vector<std::byte>(1)}});
}

// Windows that share columns, at every border, of several numbers of channels, and with a NaN.
TEST(MaxPool, WindowsOfThreeColumnsTwoApart) {
  for (const int64_t channels : {1, 4, 6, 8, 20})
    for (const int64_t side : {3, 4, 7, 10, 13})
      for (const int64_t pad : {0, 1})
        for (const int64_t height : {1, 2, 3}) {
          Tensor x = noise<float>({2, side, side + 1, channels}, -3, 3, 11);
          const MaxPoolAttrs a{.kernel = {height, 3}, .strides = {2, 2}, .pads = {pad, pad, pad, pad}};
          if (pad >= height) continue;
          check_taken_by("simd", a, {x});
          const float nan = NAN;
          std::memcpy(x.bytes.data() + x.bytes.size() / 8 * 4, &nan, sizeof(nan));
          check_taken_by("simd", a, {x});
        }
}

TEST(MaxPool, TakesTheLargest) {
  const Tensor x = iota<float>({1, 4, 4, 1}, 1);
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2, 2}, .strides = {2, 2}}, {x})[0],
               tensor<float>({1, 2, 2, 1}, {6, 8, 14, 16}));
  expect_equal(run_op(MaxPoolAttrs{.kernel = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 0, 0}}, {x})[0],
               tensor<float>({1, 2, 2, 1}, {6, 8, 14, 16}));
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2, 2}, .dilations = {2, 2}}, {x})[0],
               tensor<float>({1, 2, 2, 1}, {11, 12, 15, 16}));
  // The last window of ceil mode starts inside; one that would start beyond is dropped.
  expect_equal(run_op(MaxPoolAttrs{.kernel = {3, 3}, .strides = {2, 2}, .ceil_mode = 1}, {x})[0],
               tensor<float>({1, 2, 2, 1}, {11, 12, 15, 16}));
  expect_equal(
      run_op(MaxPoolAttrs{.kernel = {1}, .strides = {2}, .ceil_mode = 1}, {iota<float>({1, 2, 1})})[0],
      tensor<float>({1, 1, 1}, {0}));
}

TEST(MaxPool, HandlesChannelsAxesAndTypes) {
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2}, .strides = {1}},
                      {tensor<float>({1, 3, 2}, {1, -1, 0, -3, 5, -2})})[0],
               tensor<float>({1, 2, 2}, {1, -1, 5, -2}));
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2, 2, 2}}, {iota<uint8_t>({1, 2, 2, 3, 1})})[0],
               tensor<uint8_t>({1, 1, 1, 2, 1}, {10, 11}));
  expect_equal(
      run_op(MaxPoolAttrs{.kernel = {2}, .pads = {1, 0}}, {tensor<int8_t>({1, 2, 1}, {-128, -5})})[0],
      tensor<int8_t>({1, 2, 1}, {-128, -5}));
  const Tensor wide = noise<float>({2, 3, 130}, -1, 1);  // more channels than a block
  const auto y = run_op(MaxPoolAttrs{.kernel = {3}}, {wide});
  const auto a = wide.values<float>(), b = y[0].values<float>();
  for (size_t n = 0; n < 2; ++n)
    for (size_t c = 0; c < 130; ++c)
      EXPECT_EQ(b[n * 130 + c], std::max({a[n * 390 + c], a[n * 390 + 130 + c], a[n * 390 + 260 + c]}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2}}, {tensor<float>({1, 3, 1}, {1, nan, 2})})[0],
               tensor<float>({1, 2, 1}, {nan, nan}));
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2, 2}}, {iota<float>({0, 3, 3, 2})})[0],
               iota<float>({0, 2, 2, 2}));
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2, 2}}, {iota<float>({1, 3, 3, 0})})[0],
               iota<float>({1, 2, 2, 0}));
}

// Indices count in [N, C, H, W], whatever the layout.
TEST(MaxPool, GivesIndices) {
  const Tensor x = tensor<float>({1, 2, 3, 2}, {0, 9, 1, 8, 2, 7, 3, 6, 4, 5, 5, 4});
  MaxPoolAttrs a{.kernel = {2, 2}};
  const auto y = run_op(a, {x}, {.outputs = 2});
  expect_equal(y[0], tensor<float>({1, 1, 2, 2}, {4, 9, 5, 8}));
  expect_equal(y[1], tensor<int64_t>({1, 1, 2, 2}, {4, 6, 5, 7}));
  a.storage_order = 1;
  expect_equal(run_op(a, {x}, {.outputs = 2})[1], tensor<int64_t>({1, 1, 2, 2}, {3, 6, 5, 8}));
  // The first of equal elements.
  expect_equal(run_op(MaxPoolAttrs{.kernel = {2}}, {full<int32_t>({1, 3, 1}, 4)}, {.outputs = 2})[1],
               tensor<int64_t>({1, 2, 1}, {0, 1}));
  expect_equal(run_op(a, {x}, {.outputs = 2, .unwanted = {0}})[1],
               tensor<int64_t>({1, 1, 2, 2}, {3, 6, 5, 8}));
}

TEST(MaxPool, Refuses) {
  const Tensor x = iota<float>({1, 4, 4, 1});
  expect_refused(MaxPoolAttrs{.kernel = {2}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {5, 5}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {0, 1}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .strides = {0, 1}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .strides = {1}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .dilations = {1, -1}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .pads = {1, 1}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .pads = {-1, 0, 0, 0}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .pads = {2, 0, 0, 0}}, {x});  // a window of padding only
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .dilations = {5, 1}, .pads = {4, 0, 4, 0}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {1, 1}, .dilations = {INT64_MAX, 1}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {INT64_MAX, 2}, .dilations = {INT64_MAX, 1}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .pads = {INT64_MAX, 0, INT64_MAX, 0}}, {x});
  expect_refused(MaxPoolAttrs{.kernel = {2, 2}, .ceil_mode = 2}, {x});
  expect_refused(MaxPoolAttrs{}, {iota<float>({1, 4})});
  expect_refused(MaxPoolAttrs{.kernel = {1, 1}}, {iota<bool>({1, 4, 4, 1})});
}

TEST(AvgPool, Averages) {
  const Tensor x = iota<float>({1, 3, 3, 1}, 1);
  expect_equal(run_op(AvgPoolAttrs{.kernel = {2, 2}}, {x})[0], tensor<float>({1, 2, 2, 1}, {3, 4, 6, 7}));
  const AvgPoolAttrs padded{.kernel = {2, 2}, .strides = {2, 2}, .pads = {1, 1, 0, 0}};
  expect_equal(run_op(padded, {x})[0], tensor<float>({1, 2, 2, 1}, {1, 2.5, 5.5, 7}));
  AvgPoolAttrs counted = padded;
  counted.count_include_pad = 1;
  expect_equal(run_op(counted, {x})[0], tensor<float>({1, 2, 2, 1}, {0.25, 1.25, 2.75, 7}));
  expect_equal(run_op(AvgPoolAttrs{.kernel = {2}, .dilations = {2}}, {iota<double>({1, 4, 1})})[0],
               tensor<double>({1, 2, 1}, {1, 2}));
  expect_equal(run_op(AvgPoolAttrs{.kernel = {1, 2, 1}}, {iota<float>({1, 1, 2, 2, 2})})[0],
               tensor<float>({1, 1, 1, 2, 2}, {2, 3, 4, 5}));
}

// What ceil mode adds beyond the padding is not counted, the padding itself is if asked.
TEST(AvgPool, CountsInCeilMode) {
  const Tensor x = iota<float>({1, 4, 1}, 1);
  AvgPoolAttrs a{.kernel = {3}, .strides = {2}, .ceil_mode = 1};
  expect_equal(run_op(a, {x})[0], tensor<float>({1, 2, 1}, {2, 3.5}));
  a.count_include_pad = 1;
  expect_equal(run_op(a, {x})[0], tensor<float>({1, 2, 1}, {2, 3.5}));
  a.pads = {0, 1};  // windows at 0 and 2: the second holds 3, 4 and one padding element
  expect_near(run_op(a, {x})[0], tensor<float>({1, 2, 1}, {2, 7.0f / 3}));
  a.kernel = {4};  // the second: 3, 4, one padding element; the fourth is beyond
  expect_near(run_op(a, {x})[0], tensor<float>({1, 2, 1}, {2.5, 7.0f / 3}));
}

// Few windows of many taps, which backends divide among threads: whole images, and long windows along an
// axis.
struct LargeWindow {
  Shape x;
  IntList kernel, strides, pads;
};
const LargeWindow kLargeWindows[] = {
    {{1, 25, 5, 64}, {25, 5}, {}, {}},
    {{2, 9, 7, 3}, {9, 7}, {}, {}},
    {{1, 9, 7, 16}, {5, 7}, {2, 1}, {2, 0, 1, 0}},
    {{1, 3, 6, 8, 16}, {3, 6, 8}, {}, {}},
    {{1, 4, 6, 8, 5}, {2, 6, 8}, {2, 1, 1}, {}},
    {{1, 200, 3}, {100}, {50}, {10, 20}},
    {{1, 1, 90, 4}, {1, 70}, {}, {}},
    {{1, 90, 1, 4}, {70, 1}, {1, 2}, {0, 0, 0, 0}},
};

TEST(AvgPool, LargeWindows) {
  for (const LargeWindow& w : kLargeWindows)
    for (const int64_t include : {0, 1}) {
      const Tensor x = noise<float>(w.x, -3, 3, 5);
      const AvgPoolAttrs a{
          .kernel = w.kernel, .strides = w.strides, .pads = w.pads, .count_include_pad = include};
      run_op(a, {x});
      for (const DType type : {DType::kFloat16, DType::kBFloat16}) run_op(a, {halved(x, type)});
      run_op(a, {noise<double>(w.x, -3, 3, 5)});
      const QAvgPoolAttrs q{w.kernel, w.strides, {}, w.pads, 0, include, 3, -2, 0.93, -128, 127};
      run_op(q, {noise<int8_t>(w.x, -128, 127, 5)});
    }
}

TEST(MaxPool, LargeWindows) {
  for (const LargeWindow& w : kLargeWindows) {
    const MaxPoolAttrs a{.kernel = w.kernel, .strides = w.strides, .pads = w.pads};
    Tensor x = noise<float>(w.x, -3, 3, 5);
    run_op(a, {x});
    run_op(a, {halved(x)});
    run_op(a, {noise<int8_t>(w.x, -128, 127, 5)});
    run_op(a, {noise<uint16_t>(w.x, 0, 65535, 5)});
    const float nan = NAN;
    std::memcpy(x.bytes.data() + x.bytes.size() / 8 * 4, &nan, sizeof(nan));
    run_op(a, {x});
  }
}

TEST(AvgPool, Refuses) {
  const Tensor x = iota<float>({1, 4, 4, 1});
  expect_refused(AvgPoolAttrs{.kernel = {2, 2}, .pads = {2, 0, 0, 0}}, {x});
  expect_refused(AvgPoolAttrs{.kernel = {2, 2}, .count_include_pad = 2}, {x});
  expect_refused(AvgPoolAttrs{.kernel = {6, 2}}, {x});
  expect_refused(AvgPoolAttrs{.kernel = {2, 2}}, {iota<int32_t>({1, 4, 4, 1})});
}

}  // namespace
}  // namespace sinter::test
