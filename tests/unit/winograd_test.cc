// Which convolutions are computed by Winograd's algorithm: by cost, by error, and by what it computes at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "converter/cost/node_cost.h"
#include "converter/ir/builder.h"
#include "converter/plan/choose_winograd.h"
#include "converter/plan/winograd_error.h"
#include "converter/target/target_platforms.h"

namespace sinter::convert {
namespace {

// Numbers in (-1, 1) without a pattern.
std::vector<float> scattered(int64_t count) {
  std::vector<float> v;
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    v.push_back(static_cast<float>(state >> 8) * 0x1p-23f - 1);
  }
  return v;
}

PlanOptions options_for(Architecture architecture, uint32_t features = 0) {
  PlanOptions options;
  options.target.architecture = architecture;
  options.target.features = features;
  options.platforms = platforms_for(options.target);
  return options;
}
PlanOptions avx2() { return options_for(Architecture::kX86_64, Feature::kAvx2); }

struct WinogradGraph {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  int64_t tile(const PlanOptions& options) {
    choose_winograd(*graph, options);
    return graph->nodes.back().as<ConvAttrs>()->winograd;
  }
};

WinogradGraph conv_of(int64_t side, int64_t in, int64_t out, const std::vector<float>& weights,
                      void (*change)(ConvAttrs&) = nullptr) {
  WinogradGraph g;
  Builder builder(*g.graph);
  const ValueId x = g.graph->add_value("x", DType::kFloat32, {1, side, side, in});
  g.graph->inputs = {x};
  const auto channels = static_cast<int64_t>(weights.size()) / (9 * out);
  const ValueId w = g.graph->add_constant(
      Constant::of(DType::kFloat32, {out, 3, 3, channels}, std::span<const float>(weights)), "w");
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  if (change != nullptr) change(a);
  std::vector<ValueId> y;
  EXPECT_TRUE(builder.emit(a, {x, w}, 1, &y).ok());
  g.graph->outputs = y;
  return g;
}
WinogradGraph conv_of(int64_t side, int64_t in, int64_t out) {
  return conv_of(side, in, out, scattered(out * 9 * in));
}

TEST(ChooseWinograd, WhereItTakesLessTime) {
  EXPECT_EQ(conv_of(56, 64, 64).tile(avx2()), 4);
  EXPECT_EQ(conv_of(56, 64, 64).tile(options_for(Architecture::kX86_64, Feature::kAvx512Vnni)), 4);
  EXPECT_EQ(conv_of(56, 64, 64).tile(options_for(Architecture::kAarch64, Feature::kDotprod)), 4);
  EXPECT_EQ(conv_of(56, 64, 64).tile(options_for(Architecture::kArmv7, Feature::kNeon)), 4);
  // Four tiles do not pay for reading four times the weights.
  EXPECT_NE(conv_of(7, 512, 512).tile(avx2()), 4);
  EXPECT_EQ(conv_of(2, 8, 8).tile(avx2()), 0);
  EXPECT_EQ(conv_of(56, 64, 1).tile(avx2()), 0);
}

TEST(ChooseWinograd, OnlyOnPlatformsThatComputeIt) {
  EXPECT_EQ(conv_of(56, 64, 64).tile(options_for(Architecture::kPortable)), 0);
  EXPECT_EQ(conv_of(56, 64, 64).tile(options_for(Architecture::kCortexM)), 0);
  PlanOptions options = avx2();
  std::erase_if(options.platforms, [](const Platform* p) { return p->computes_winograd != nullptr; });
  EXPECT_EQ(conv_of(56, 64, 64).tile(options), 0);
}

TEST(ChooseWinograd, OnlyWindowsThatItComputes) {
  const auto none = [](void (*change)(ConvAttrs&), int64_t channels = 64) {
    EXPECT_EQ(conv_of(56, 64, 64, scattered(64 * 9 * channels), change).tile(avx2()), 0);
  };
  none([](ConvAttrs& a) { a.strides = {2, 2}; });
  none([](ConvAttrs& a) { a.dilations = {1, 2}; });
  none([](ConvAttrs& a) { a.group = 2; }, 32);
  WinogradGraph g = conv_of(56, 64, 64);
  g.graph->value(g.graph->nodes[0].inputs[1]).constant = nullptr;
  EXPECT_EQ(g.tile(avx2()), 0) << "computed weights";
}

TEST(ChooseWinograd, OnlyWhereTheErrorAllows) {
  // One tap of 1 in each filter: direct sums are exact.
  std::vector<float> weights(64 * 9 * 64, 0.0f);
  for (size_t o = 0; o < 64; ++o) weights[(o * 9 + 4) * 64 + o] = 1;
  EXPECT_EQ(conv_of(56, 64, 64, weights).tile(avx2()), 0);
  // So are those of half of the filters, whose weights are the largest.
  weights = scattered(64 * 9 * 64);
  for (size_t o = 0; o < 32; ++o)
    for (size_t i = 0; i < 9 * 64; ++i) weights[o * 9 * 64 + i] = i == 4 * 64 + o ? 16384.0f : 0;
  EXPECT_EQ(conv_of(56, 64, 64, weights).tile(avx2()), 0);
  weights = scattered(64 * 9 * 64);
  weights[99] = NAN;
  EXPECT_EQ(conv_of(56, 64, 64, weights).tile(avx2()), 0);
  weights[99] = 3e38f;
  weights[100] = 3e38f;
  EXPECT_EQ(conv_of(56, 64, 64, weights).tile(avx2()), 0);
}

TEST(ChooseWinograd, PlansThePlatformThatComputesIt) {
  WinogradGraph g = conv_of(56, 64, 64);
  const PlanOptions options = avx2();
  ASSERT_EQ(g.tile(options), 4);
  advance(*g.graph, Stage::kRewritten);
  const PlannedModel model = plan_model(g.graph, options);
  const uint8_t first = model.programs[0].steps.back().candidates[0];
  EXPECT_NE(options.platforms.at(first)->computes_winograd, nullptr);
}

// Its convolutions are direct, whatever times it lists.
TEST(ChooseWinograd, LeavesNoneToOnednn) {
  for (const uint32_t features : {0u + Feature::kAvx2, 0u + Feature::kAvx512Vnni}) {
    WinogradGraph g = conv_of(56, 64, 64);
    PlanOptions options = options_for(Architecture::kX86_64, features);
    options.platforms = platforms_serving(options.target);
    ASSERT_EQ(g.tile(options), 4);
    advance(*g.graph, Stage::kRewritten);
    const PlannedModel model = plan_model(g.graph, options);
    const std::vector<uint8_t>& order = model.programs[0].steps.back().candidates;
    EXPECT_EQ(model.backends.at(order[0]), "simd");
    EXPECT_TRUE(
        std::any_of(order.begin(), order.end(), [&](uint8_t i) { return model.backends[i] == "onednn"; }));
  }
}

// docs/numerics.md has these.
TEST(WinogradError, OfEachTile) {
  const auto rms = [](int64_t channels, int64_t tile) {
    return winograd_error(scattered(64 * 9 * channels), 64, channels, tile).rms;
  };
  EXPECT_LT(rms(64, 2), 0.8);
  EXPECT_LT(rms(64, 4), 2.3);
  EXPECT_LT(rms(16, 4), 2.8);
  EXPECT_GT(rms(64, 6), kMostWinogradError);
  EXPECT_TRUE(std::isnan(winograd_error(std::vector<float>(9, INFINITY), 1, 1, 2).rms));
  EXPECT_EQ(winograd_error(std::vector<float>(9, 0.0f), 1, 1, 2).rms, 0);
}

TEST(WinogradCost, GrowsWithTheWork) {
  for (const Cpu cpu : kCpus)
    for (const int64_t tile : {2, 4, 6}) {
      const auto cost = [&](int64_t side, int64_t in, int64_t out) {
        return winograd_cost(cpu, {out, 3, 3, in}, {1, side, side, out}, tile);
      };
      EXPECT_LT(cost(24, 32, 32), cost(25, 32, 32));
      EXPECT_LT(cost(24, 32, 32), cost(24, 64, 32));
      EXPECT_LT(cost(24, 32, 32), cost(24, 32, 64));
    }
}

}  // namespace
}  // namespace sinter::convert
