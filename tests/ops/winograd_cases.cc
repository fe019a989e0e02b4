// Conv where the attribute permits Winograd's algorithm: the reference kernels compute directly, backends on
// tiles. Borders, tiles that are partly outside, channels that are not whole vectors, several blocks of tiles
// and several parts of channels.
#include <cmath>
#include <limits>

#include "runtime/backend/winograd.h"
#include "tests/op_harness/backends.h"
#include "tests/op_harness/instruction_sets.h"
#include "tests/op_harness/op_test.h"
#include "tests/op_harness/tolerance.h"

namespace sinter::test {
namespace {

ConvAttrs winograd(int64_t tile, const IntList& pads = {1, 1, 1, 1}) {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = pads, a.winograd = tile;
  return a;
}

struct WinogradCase {
  int64_t batch, height, width, channels, outputs;
  bool bias;
};

void check_winograd(const ConvAttrs& a, const WinogradCase& c) {
  SCOPED_TRACE(testing::Message() << "tile " << a.winograd << ", " << c.height << "x" << c.width << "x"
                                  << c.channels << "-" << c.outputs);
  std::vector<Tensor> inputs = {noise<float>({c.batch, c.height, c.width, c.channels}, -1, 1, 1),
                                noise<float>({c.outputs, 3, 3, c.channels}, -1, 1, 2)};
  if (c.bias) inputs.push_back(noise<float>({c.outputs}, -1, 1, 3));
  ConvAttrs direct = a;
  direct.winograd = 0;
  expect_equal(run_op(a, inputs)[0], run_op(direct, inputs, {.backends = false})[0]);
}

TEST(Winograd, EverySizeOfImage) {
  for (const int64_t tile : kWinogradTiles)
    for (int64_t side = 1; side <= 13; ++side)
      check_winograd(winograd(tile), {1, side, 14 - side, 3, 5, side % 2 == 0});
}

TEST(Winograd, EveryPadding) {
  for (const int64_t tile : kWinogradTiles)
    for (const IntList& pads : {IntList{0, 0, 0, 0}, IntList{2, 0, 1, 2}, IntList{0, 2, 2, 1},
                                IntList{2, 2, 2, 2}, IntList{5, 0, 0, 7}})
      check_winograd(winograd(tile, pads), {2, 5, 9, 5, 7, true});
}

TEST(Winograd, EveryNumberOfChannels) {
  for (const int64_t tile : kWinogradTiles)
    for (const int64_t in : {1, 16, 33, 64})
      for (const int64_t out : {1, 3, 33}) check_winograd(winograd(tile), {1, 7, 6, in, out, true});
}

// More tiles than a block has, more channels than a product has, depth above one piece.
TEST(Winograd, ManyBlocksAndParts) {
  for (const int64_t tile : kWinogradTiles) {
    check_winograd(winograd(tile), {1, 61, 38, 17, 20, true});
    check_winograd(winograd(tile), {3, 5, 5, 40, 150, false});
    check_winograd(winograd(tile), {1, 3, 4, 530, 35, true});
  }
}

// Inside the image and at its edges, with and without bounds.
TEST(Winograd, KeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t tile : kWinogradTiles)
    for (const auto& [low, high] : {std::pair{-HUGE_VAL, HUGE_VAL}, {0.0, HUGE_VAL}, {0.0, 6.0}}) {
      ConvAttrs a = winograd(tile);
      a.act_min = low, a.act_max = high;
      expect_equal(run_op(a, {full<float>({1, 13, 14, 16}, nan), noise<float>({32, 3, 3, 16}, -1, 1, 2)})[0],
                   full<float>({1, 13, 14, 32}, nan));
    }
}

// An image of noise with some pixels, by their number in the batch, far from the others.
struct FarPixels {
  ConvAttrs attrs;
  Shape image;
  int64_t outputs;
  std::vector<int64_t> pixels;
  bool every_channel = true;  // of these pixels, or one of each
  double scale = 1;           // of the noise
};
Tensor with_pixels(const FarPixels& c, const Tensor& image, float value) {
  auto v = image.values<float>();
  const int64_t channels = c.image[3];
  for (const int64_t pixel : c.pixels)
    for (int64_t i = 0; i < channels; ++i)
      if (c.every_channel || i == pixel % channels) v[static_cast<size_t>(pixel * channels + i)] = value;
  return tensor<float>(c.image, v);
}

// Outputs that read none of the pixels have the same bits whatever these are, and are as exact as without
// them, on every instruction set. All others are those of direct sums, on every backend.
void check_far_pixels(const FarPixels& c, const std::vector<float>& values) {
  SCOPED_TRACE(testing::Message() << "tile " << c.attrs.winograd << ", " << c.image[1] << "x" << c.image[2]
                                  << "x" << c.image[3] << "-" << c.outputs << ", pixel " << c.pixels[0]
                                  << ", scale " << c.scale);
  const Tensor clean = with_pixels(c, noise<float>(c.image, -c.scale, c.scale, 1), 0),
               w = noise<float>({c.outputs, 3, 3, c.image[3]}, -1, 1, 2),
               bias = noise<float>({c.outputs}, -c.scale, c.scale, 3);
  ConvAttrs direct = c.attrs, plain = c.attrs;
  direct.winograd = plain.winograd = 0, plain.act_min = -HUGE_VAL, plain.act_max = HUGE_VAL;
  const RunOptions reference{.backends = false};
  const auto reads =
      run_op(plain, {with_pixels(c, full<float>(c.image, 0), 1), full<float>(w.dims, 1)}, reference)[0]
          .values<float>();
  const Tensor exact = run_op(direct, {widened(clean), widened(w), widened(bias)}, reference)[0];
  const auto want = exact.values<double>();
  const Tolerance near = tolerance_of(Op::kConv, &c.attrs, {clean, w, bias}, DType::kFloat32, exact);
  if (tested_backend("simd") == nullptr) return;
  const InstructionSets& sets = *InstructionSets::of("simd");
  for (const char* name : sets.names()) {
    ASSERT_TRUE(sets.limit(name));
    std::vector<float> first;
    for (const float value : values) {
      SCOPED_TRACE(testing::Message() << name << ", " << value);
      const auto got = run_on("simd", c.attrs, {with_pixels(c, clean, value), w, bias})[0].values<float>();
      if (first.empty()) first = got;
      int64_t unread = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        if (reads[i] != 0) continue;
        ++unread;
        ASSERT_NEAR(got[i], want[i], near.relative * std::fabs(want[i]) + near.absolute) << i;
        ASSERT_EQ(got[i], first[i]) << i;
      }
      EXPECT_GT(unread, 0);
    }
  }
  sets.limit(nullptr);
  for (const float value : values)
    run_op(c.attrs, {with_pixels(c, clean, value), w, bias}, {.emulated = false});
}

const std::vector<float> kFarValues = {1e3f, 1e6f, -1e8f, -1e9f, 1e30f, -3e37f, kInf, -kInf, kNan};

TEST(Winograd, SpreadsNoPixel) {
  for (const int64_t tile : kWinogradTiles) {
    // At corners, at edges, and inside, at each place of a tile.
    for (const int64_t pixel : {0, 18, 16 * 19, 17 * 19 - 1, 7, 8 * 19})
      check_far_pixels({winograd(tile), {1, 17, 19, 8}, 20, {pixel}, pixel % 2 == 0}, {1e6f, kNan});
    for (int64_t i = 0; i < tile; ++i)
      check_far_pixels({winograd(tile), {1, 17, 19, 3}, 12, {(6 + i) * 19 + 6 + (i * 5 + 1) % tile}, false},
                       {1e8f, -kInf});
    // All values, in images of ordinary, small and no other numbers.
    for (const double scale : {1.0, 1e-6, 0.0}) {
      FarPixels c{winograd(tile), {1, 14, 15, 16}, 12, {6 * 15 + 7}, false, scale};
      check_far_pixels(c, kFarValues);
      c.attrs.act_min = 0, c.attrs.act_max = 6;
      check_far_pixels(c, {1e6f, kInf, kNan});
    }
    // In one of several images and in several tiles; other paddings.
    check_far_pixels({winograd(tile, {0, 2, 1, 0}), {2, 14, 23, 11}, 20, {40, 200, 321}}, {1e6f, kNan});
    check_far_pixels({winograd(tile, {5, 0, 0, 7}), {1, 9, 10, 5}, 7, {33}, false}, {-1e9f, kInf});
    // Several blocks of tiles, and several products of their channels.
    check_far_pixels({winograd(tile), {1, 61, 38, 17}, 33, {38 * 30 + 20}, false}, {1e30f, -kInf});
    check_far_pixels({winograd(tile), {3, 9, 8, 40}, 150, {9 * 8 + 35}}, {1e6f, kNan});
  }
}

// Numbers that grow from pixel to pixel: each tile has windows that are small, and pixels that are neither.
TEST(Winograd, KeepsSlopesExact) {
  for (const int64_t tile : kWinogradTiles)
    for (const double step : {2.0, 8.0, 100.0}) {
      const Shape image = {1, 8, 13, 6};
      auto v = noise<float>(image, 0.5, 1, 1).values<float>();
      for (size_t i = 0; i < v.size(); ++i) v[i] *= static_cast<float>(std::pow(step, i / 6 % 13));
      const Tensor x = tensor<float>(image, v), w = noise<float>({9, 3, 3, 6}, -1, 1, 2);
      ConvAttrs direct = winograd(0);
      const auto want = run_op(direct, {widened(x), widened(w)}, {.backends = false})[0].values<double>();
      if (tested_backend("simd") == nullptr) continue;
      const auto got = run_on("simd", winograd(tile), {x, w})[0].values<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        // The largest number in the window times that of a filter, the spread of windows, and the errors of
        // tiles of all numbers alike (docs/numerics.md).
        const double largest = std::pow(step, std::min<size_t>(i / 9 % 13 + 1, 12));
        ASSERT_NEAR(got[i], want[i], 64 * largest * 54 * 0x1p-24 * (tile == 6 ? 8 : 2))
            << tile << ", " << step;
      }
    }
}

TEST(Winograd, ClampsAsTheActivationStates) {
  for (const int64_t tile : kWinogradTiles) {
    ConvAttrs a = winograd(tile);
    a.act_min = -0.5, a.act_max = 0.75;
    check_winograd(a, {1, 9, 9, 4, 6, true});
  }
}

TEST(Winograd, EmptyOperands) {
  for (const int64_t tile : kWinogradTiles) {
    check_winograd(winograd(tile), {0, 5, 5, 3, 4, true});
    check_winograd(winograd(tile), {1, 5, 5, 3, 0, false});
    check_winograd(winograd(tile), {1, 5, 5, 0, 3, true});
  }
}

TEST(Winograd, IsTakenBySimd) {
  check_taken_by("simd", winograd(4), {full<float>({1, 9, 9, 8}, 1), full<float>({12, 3, 3, 8}, 1)});
}

TEST(Winograd, RefusesWhatItDoesNotCompute) {
  const Tensor x = full<float>({1, 6, 6, 4}, 1), w = full<float>({4, 3, 3, 4}, 1);
  expect_refused(winograd(4), {full<int32_t>({1, 6, 6, 4}, 1), full<int32_t>({4, 3, 3, 4}, 1)});
  expect_refused(winograd(4), {x, full<float>({4, 5, 3, 4}, 1)});
  for (const int64_t tile : {int64_t{1}, int64_t{3}, int64_t{5}, int64_t{8}, int64_t{-2}, int64_t{-4},
                             std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()})
    expect_refused(winograd(tile), {x, w});
  const auto refuse = [&](auto change, const Tensor& weights) {
    ConvAttrs a = winograd(2);
    change(a);
    expect_refused(a, {x, weights});
  };
  refuse([](ConvAttrs& a) { a.strides = {1, 2}; }, w);
  refuse([](ConvAttrs& a) { a.dilations = {2, 1}; }, w);
  refuse([](ConvAttrs& a) { a.group = 2; }, full<float>({4, 3, 3, 2}, 1));
  ConvAttrs line;
  line.strides = line.dilations = {1}, line.pads = {1, 1}, line.winograd = 2;
  expect_refused(line, {full<float>({1, 6, 4}, 1), full<float>({4, 3, 4}, 1)});
}

}  // namespace
}  // namespace sinter::test
