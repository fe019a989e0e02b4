// Conv where the attribute permits Winograd's algorithm: the reference kernels compute directly, backends on
// tiles. Borders, tiles that are partly outside, channels that are not whole vectors, several blocks of tiles
// and several parts of channels.
#include <cmath>
#include <limits>

#include "runtime/backend/winograd.h"
#include "tests/op_harness/op_test.h"

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
