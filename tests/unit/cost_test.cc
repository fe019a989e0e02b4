// The cost table: what is known to be cheaper is, and the costs grow with the work.
#include "converter/quantize/search/cost.h"

#include <gtest/gtest.h>

namespace sinter::convert {
namespace {

struct Case {
  Graph graph;
  Node node;
};

template <class A>
Case case_of(const A& attrs, const std::vector<Dims>& inputs, const Dims& output) {
  Case c;
  c.node.attrs = attrs;
  for (const Dims& d : inputs) c.node.inputs.push_back(c.graph.add_value({}, DType::kFloat32, d));
  c.node.outputs = {c.graph.add_value({}, DType::kFloat32, output)};
  return c;
}
Case conv(int64_t side, int64_t in, int64_t out, int64_t kernel) {
  return case_of(ConvAttrs{}, {{1, side, side, in}, {out, kernel, kernel, in}}, {1, side, side, out});
}
double ratio(const Case& c, Cpu cpu = Cpu::kAvx512Vnni) {
  return int8_cost(cpu, c.graph, c.node) / float_cost(cpu, c.graph, c.node);
}

TEST(Cost, DenseConvolutionsGainMost) {
  EXPECT_LT(ratio(conv(56, 64, 64, 3)), 0.35);
  EXPECT_LT(ratio(conv(14, 256, 256, 3)), 0.35);
  EXPECT_LT(ratio(conv(56, 24, 144, 1)), 0.9);
  // 1064 and 285 microseconds were measured.
  const Case c = conv(56, 64, 64, 3);
  EXPECT_NEAR(float_cost(Cpu::kAvx512Vnni, c.graph, c.node), 1064e3, 200e3);
  EXPECT_NEAR(int8_cost(Cpu::kAvx512Vnni, c.graph, c.node), 285e3, 60e3);
}

TEST(Cost, FollowsTheInstructionSet) {
  const Case deep = conv(56, 64, 64, 3),
             depthwise = case_of(DepthwiseConvAttrs{}, {{1, 56, 56, 144}, {3, 3, 144}}, {1, 56, 56, 144});
  // Without dot products of bytes little is won; 2644 and 1917 microseconds were measured with AVX2.
  EXPECT_NEAR(ratio(deep, Cpu::kAvx2), 1917.0 / 2644, 0.05);
  EXPECT_GT(ratio(deep, Cpu::kNeon), 2 * ratio(deep, Cpu::kDotprod));
  // 202 and 275 microseconds.
  EXPECT_NEAR(ratio(depthwise, Cpu::kAvx2), 275.0 / 202, 0.15);
  EXPECT_LT(ratio(depthwise), 0.9 * ratio(depthwise, Cpu::kAvx2));
}

TEST(Cost, MultiplyAddsOfEveryProduct) {
  const auto of = [](const Case& c) { return multiply_adds(c.graph, c.node); };
  EXPECT_EQ(of(conv(56, 64, 32, 3)), 56 * 56 * 32 * 64 * 9);
  EXPECT_EQ(of(case_of(DepthwiseConvAttrs{}, {{1, 8, 8, 16}, {3, 3, 16}}, {1, 8, 8, 16})), 8 * 8 * 16 * 9);
  EXPECT_EQ(of(case_of(FullyConnectedAttrs{}, {{5, 64}, {10, 64}}, {5, 10})), 5 * 64 * 10);
  EXPECT_EQ(of(case_of(MatMulAttrs{}, {{2, 5, 7}, {2, 7, 3}}, {2, 5, 3})), 2 * 5 * 7 * 3);
  MatMulAttrs turned;
  turned.transpose_a = 1;
  EXPECT_EQ(of(case_of(turned, {{7, 5}, {7, 3}}, {5, 3})), 5 * 7 * 3);
  EXPECT_EQ(of(case_of(AddAttrs{}, {{100}, {100}}, {100})), 0);
}

Case lstm(int64_t steps, int64_t in, int64_t hidden) {
  return case_of(LstmAttrs{}, {{steps, 1, in}, {1, 4 * hidden, in}, {1, 4 * hidden, hidden}},
                 {steps, 1, 1, hidden});
}

TEST(Cost, RecurrentLayersGainWithTheirWidth) {
  EXPECT_GT(ratio(lstm(20, 8, 16)), 1);
  EXPECT_GT(ratio(lstm(50, 64, 128)), 1);
  EXPECT_LT(ratio(lstm(20, 256, 512)), 0.4);
  // 3248 and 819 microseconds were measured.
  Case c = lstm(20, 256, 512);
  EXPECT_NEAR(float_cost(Cpu::kAvx512Vnni, c.graph, c.node), 3248e3, 300e3);
  EXPECT_NEAR(int8_cost(Cpu::kAvx512Vnni, c.graph, c.node), 819e3, 100e3);
  // Its first result may be absent.
  c.node.outputs = {kAbsent, c.node.outputs[0]};
  EXPECT_EQ(multiply_adds(c.graph, c.node), 20 * 4 * 512 * (256 + 512));
}

TEST(Cost, SmallStepsCostTheirOverhead) {
  const Case c = conv(2, 3, 2, 1);
  EXPECT_GT(ratio(c), 1);
  EXPECT_LT(float_cost(Cpu::kAvx512Vnni, c.graph, c.node), 1000);
}

TEST(Cost, GrowsWithTheWork) {
  for (double (*cost)(Cpu, const Graph&, const Node&) : {float_cost, int8_cost, int16_cost})
    for (const Cpu cpu : kCpus) {
      const auto of = [&](const Case& c) { return cost(cpu, c.graph, c.node); };
      EXPECT_LT(of(conv(8, 16, 16, 3)), of(conv(8, 32, 16, 3)));
      EXPECT_LT(of(conv(8, 16, 16, 3)), of(conv(8, 16, 32, 3)));
      EXPECT_LT(of(conv(8, 16, 16, 3)), of(conv(9, 16, 16, 3)));
      EXPECT_LT(of(case_of(AddAttrs{}, {{100}, {100}}, {100})),
                of(case_of(AddAttrs{}, {{900}, {900}}, {900})));
      EXPECT_LT(of(case_of(FullyConnectedAttrs{}, {{1, 64}, {10, 64}}, {1, 10})),
                of(case_of(FullyConnectedAttrs{}, {{1, 640}, {10, 640}}, {1, 10})));
    }
  for (const Cpu cpu : kCpus) EXPECT_LT(boundary_cost(cpu, 10), boundary_cost(cpu, 10000));
}

TEST(Cost, GroupsCountTheirOwnChannelsOnly) {
  ConvAttrs a;
  a.group = 4;
  const Case grouped = case_of(a, {{1, 28, 28, 64}, {64, 3, 3, 16}}, {1, 28, 28, 64}),
             whole = conv(28, 64, 64, 3);
  EXPECT_NEAR(float_cost(Cpu::kAvx512Vnni, grouped.graph, grouped.node) * 4,
              float_cost(Cpu::kAvx512Vnni, whole.graph, whole.node),
              0.2 * float_cost(Cpu::kAvx512Vnni, whole.graph, whole.node));
}

TEST(Cost, TablesBeatFunctions) {
  EXPECT_LT(ratio(case_of(SigmoidAttrs{}, {{1, 56, 56, 64}}, {1, 56, 56, 64})), 0.2);
}

}  // namespace
}  // namespace sinter::convert
