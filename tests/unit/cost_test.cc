// Tables of costs: what is known to be cheaper is, costs grow with the work, and every number has a
// provenance. Times of kernels decide between platforms.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "converter/cost/node_cost.h"
#include "converter/cost/tables.h"
#include "converter/cost/work.h"
#include "converter/ir/call_view.h"
#include "converter/plan/candidates.h"
#include "platforms/platforms.h"
#include "platforms/times/kernel_time.h"

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
  // 1978 and 509 microseconds were measured.
  const Case c = conv(56, 64, 64, 3);
  EXPECT_NEAR(float_cost(Cpu::kAvx512Vnni, c.graph, c.node), 1978e3, 200e3);
  EXPECT_NEAR(int8_cost(Cpu::kAvx512Vnni, c.graph, c.node), 509e3, 60e3);
}

TEST(Cost, FollowsTheInstructionSet) {
  const Case deep = conv(56, 64, 64, 3), wide = conv(7, 320, 1280, 1),
             depthwise = case_of(DepthwiseConvAttrs{}, {{1, 56, 56, 144}, {3, 3, 144}}, {1, 56, 56, 144});
  // Without dot products of bytes less is won; 361 and 164 microseconds were measured with AVX2.
  EXPECT_NEAR(ratio(wide, Cpu::kAvx2), 164.0 / 361, 0.05);
  EXPECT_GT(ratio(deep, Cpu::kNeon), 2 * ratio(deep, Cpu::kDotprod));
  // 117 and 128 microseconds; 97 and 74 with dot products.
  EXPECT_NEAR(ratio(depthwise, Cpu::kAvx2), 128.0 / 117, 0.05);
  EXPECT_NEAR(ratio(depthwise), 74.0 / 97, 0.06);
}

// Of two lines and windows of five, 4 of 10 lines are inside.
TEST(Cost, LinesOfPaddingCostFloatNothing) {
  const auto depthwise = [](int64_t lines, int64_t pad) {
    DepthwiseConvAttrs a;
    a.strides = a.dilations = {1, 1}, a.pads = {pad, 2, pad, 2};
    const int64_t out = lines + 2 * pad - 4;
    return case_of(a, {{1, lines, 96, 200}, {5, 5, 200}}, {1, out, 96, 200});
  };
  const Case inside = depthwise(6, 0), padded = depthwise(2, 2);
  const auto products = [](const Case& c) {
    const Counts counts = counts_of(Cpu::kAvx2, CallShape(c.graph, c.node));
    return std::pair(counts.float_products, counts.int8_products);
  };
  EXPECT_EQ(products(inside).second, products(padded).second);
  EXPECT_EQ(products(inside).first, products(inside).second);
  EXPECT_DOUBLE_EQ(products(padded).first, 0.4 * products(padded).second);
  DepthwiseConvAttrs strided;
  strided.strides = {3, 1}, strided.dilations = {2, 1}, strided.pads = {3, 0, 4, 0};
  // Lines 0 to 9 under taps -3, -1, 1; 0, 2, 4; 3, 5, 7; 6, 8, 10 of four results: 9 of 12.
  const Case other = case_of(strided, {{1, 10, 8, 16}, {3, 1, 16}}, {1, 4, 8, 16});
  EXPECT_DOUBLE_EQ(products(other).first, 0.75 * products(other).second);
}

TEST(Cost, MultiplyAddsOfEveryProduct) {
  const auto of = [](const Case& c) { return multiply_adds(CallShape(c.graph, c.node)); };
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
  EXPECT_GT(ratio(lstm(50, 64, 128)), 1.5 * ratio(lstm(20, 256, 512)));
  EXPECT_LT(ratio(lstm(20, 256, 512)), 0.7);
  // 1152 and 607 microseconds were measured.
  Case c = lstm(20, 256, 512);
  EXPECT_NEAR(float_cost(Cpu::kAvx512Vnni, c.graph, c.node), 1152e3, 200e3);
  EXPECT_NEAR(int8_cost(Cpu::kAvx512Vnni, c.graph, c.node), 607e3, 60e3);
  // Its first result may be absent.
  c.node.outputs = {kAbsent, c.node.outputs[0]};
  EXPECT_EQ(multiply_adds(CallShape(c.graph, c.node)), 20 * 4 * 512 * (256 + 512));
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

// A product of float32 sums doubles, which microcontrollers compute in software. 195 and 16
// million instructions were counted on a Cortex-M4.
TEST(Cost, ReferenceKernelsGainMostWithoutDoubles) {
  EXPECT_LT(ratio(conv(8, 64, 64, 1), Cpu::kCortexM), 0.05);
  EXPECT_LT(ratio(conv(8, 64, 64, 1), Cpu::kPortable), 0.5);
  const Case c = case_of(ConvAttrs{}, {{1, 60, 80, 16}, {16, 1, 1, 16}}, {1, 60, 80, 16});
  EXPECT_NEAR(ratio(c, Cpu::kCortexM), 16305910.0 / 194950779, 0.01);
  EXPECT_LT(boundary_cost(Cpu::kCortexM, 60 * 80 * 16), 0.25 * int8_cost(Cpu::kCortexM, c.graph, c.node));
}

// ---- provenance

TEST(CostTables, StateWhereTheirNumbersComeFrom) {
  for (const Cpu cpu : kCpus) {
    const CostTable& t = cost_table(cpu);
    bool measured = t.far_float.provenance == Provenance::kMeasured;
    for (const Rates* rates :
         {&t.conv, &t.depthwise, &t.conv_transpose, &t.one_row, &t.mat_mul, &t.recurrent, &t.arithmetic,
          &t.function, &t.cheap_function, &t.prelu, &t.pool, &t.movement, &t.resize, &t.other})
      for (const Rate& rate : {rates->float32, rates->int8, rates->int16}) {
        measured |= rate.provenance == Provenance::kMeasured;
        EXPECT_GT(rate.step, 0);
      }
    for (const char* text : {t.origin.machine, t.origin.date, t.origin.program})
      EXPECT_EQ(std::string_view(text).empty(), !measured) << cpu_name(cpu);
  }
}

// ---- threads

uint32_t threads_with_avx2(const Case& c) {
  return worthwhile_threads({Architecture::kX86_64, Feature::kAvx2}, CallView(c.graph, c.node).call);
}

// A microsecond and a half by the rates of AVX2.
TEST(Threads, ASecondOneStartsForLongSteps) {
  EXPECT_EQ(threads_with_avx2(conv(8, 8, 8, 3)), 1u);    // 36864 multiply-adds
  EXPECT_EQ(threads_with_avx2(conv(8, 16, 16, 3)), 0u);  // 147456
  EXPECT_EQ(threads_with_avx2(case_of(SigmoidAttrs{}, {{2000}}, {2000})), 1u);
  EXPECT_EQ(threads_with_avx2(case_of(SigmoidAttrs{}, {{12000}}, {12000})), 0u);
  EXPECT_EQ(threads_with_avx2(case_of(AbsAttrs{}, {{4000}}, {4000})), 1u);
  EXPECT_EQ(threads_with_avx2(case_of(AbsAttrs{}, {{40000}}, {40000})), 0u);
  // Six channels become one: 1350000 multiply-adds, not the 37500 of as many channels as there are results.
  EXPECT_EQ(
      threads_with_avx2(case_of(ConvTransposeAttrs{}, {{1, 50, 50, 60}, {1, 3, 3, 60}}, {1, 52, 52, 1})), 0u);
}

TEST(Threads, OperationsOnIntegersHaveTheirOwnRates) {
  const auto on = [](DType type, const auto& attrs, const std::vector<Dims>& inputs, const Dims& output) {
    Case c = case_of(attrs, inputs, output);
    c.graph.values[static_cast<size_t>(c.node.inputs[0])].dtype = type;
    return step_cost(Cpu::kAvx512Vnni, CallView(c.graph, c.node).call);
  };
  const std::vector<Dims> operands = {{1, 28, 28, 64}, {64, 3, 3, 64}, {64}, {64}};
  const Dims y = {1, 28, 28, 64};
  const double of_float = on(DType::kFloat32, ConvAttrs{}, {operands[0], operands[1]}, y);
  EXPECT_LT(on(DType::kInt8, QConvAttrs{}, operands, y), 0.5 * of_float);
  EXPECT_GT(on(DType::kInt16, QConvAttrs{}, operands, y), 2 * on(DType::kInt8, QConvAttrs{}, operands, y));
  // Scores and sums of values, each 4 * 50 * 50 * 16 products.
  EXPECT_GT(on(DType::kFloat32, AttentionAttrs{}, {{4, 50, 16}, {4, 50, 16}, {4, 50, 16}}, {4, 50, 16}),
            on(DType::kFloat32, AddAttrs{}, {{4, 50, 16}, {4, 50, 16}}, {4, 50, 16}));
}

// ---- times of kernels

const Platform& platform_named(std::string_view name) {
  for (const Platform* p : all_platforms())
    if (p->name == name) return *p;
  ADD_FAILURE() << name;
  return *all_platforms().front();
}

using kernel_time::CallClass, kernel_time::KernelTime;
constexpr KernelTime kSimdTimes[] = {
#include "platforms/simd/kernel_times.def"
};
constexpr KernelTime kXnnpackTimes[] = {
#include "platforms/xnnpack/planning/kernel_times.def"
};
constexpr KernelTime kOnednnTimes[] = {
#include "platforms/onednn/planning/kernel_times.def"
};

TEST(KernelTimes, EveryRowHasOneToCompareItWith) {
  std::map<std::tuple<Op, CallClass, Cpu>, std::vector<KernelTime>> rows;
  for (const std::span<const KernelTime> list :
       {std::span<const KernelTime>(kSimdTimes), {kXnnpackTimes}, {kOnednnTimes}}) {
    std::map<std::tuple<Op, CallClass, Cpu>, int> own;
    for (const KernelTime& row : list) {
      EXPECT_GT(row.time, 0);
      EXPECT_EQ(++own[std::tuple(row.op, row.calls, row.cpu)], 1) << op_name(row.op);
      rows[std::tuple(row.op, row.calls, row.cpu)].push_back(row);
    }
  }
  for (const auto& [key, times] : rows) {
    EXPECT_GE(times.size(), 2u) << op_name(std::get<0>(key));
    for (const KernelTime& t : times) EXPECT_EQ(t.provenance, times[0].provenance) << op_name(t.op);
  }
}

// Constant weights, as convolutions and fully connected layers have them.
template <class A>
bool simd_is_preferred(Cpu cpu, const A& attrs, const std::vector<Dims>& inputs, const Dims& output,
                       bool computed = false) {
  Case c = case_of(attrs, inputs, output);
  CallView view(c.graph, c.node);
  for (size_t i = 1; i < view.inputs.size(); ++i) view.inputs[i].constant = !computed;
  return is_preferred(platform_named("simd"), platform_named("xnnpack"), cpu, view.call, Preference::kTime);
}

TEST(KernelOrder, MemoryDecidesFirstWhereItIsTight) {
  const Case c = case_of(ConvAttrs{}, {{1, 18, 18, 16}, {32, 3, 3, 16}}, {1, 18, 18, 32});
  CallView view(c.graph, c.node);
  view.inputs[1].constant = true;
  const Platform &simd = platform_named("simd"), &xnnpack = platform_named("xnnpack");
  EXPECT_EQ(kept_bytes(simd, view.call), 0u);
  EXPECT_GE(kept_bytes(xnnpack, view.call), 9u * 18 * 18 * 8);  // the address of each tap
  EXPECT_FALSE(is_preferred(simd, xnnpack, Cpu::kAvx512Vnni, view.call, Preference::kTime));
  EXPECT_TRUE(is_preferred(simd, xnnpack, Cpu::kAvx512Vnni, view.call, Preference::kMemory));
  EXPECT_FALSE(is_preferred(xnnpack, simd, Cpu::kAvx512Vnni, view.call, Preference::kMemory));
}

TEST(KernelTimes, DecideBetweenPlatforms) {
  for (const Cpu cpu : kCpus) {
    if (is_on_reference_kernels(cpu) || cpu == Cpu::kArmv7) continue;
    const bool x86 = cpu == Cpu::kAvx512Vnni || cpu == Cpu::kAvx2;
    const auto conv_to = [&](int64_t channels, int64_t kernel, int64_t group = 1, int64_t columns = 17) {
      ConvAttrs a;
      a.group = group;
      return simd_is_preferred(cpu, a, {{1, 9, columns, 16}, {channels, kernel, kernel, 16 / group}},
                               {1, 9, columns, channels});
    };
    EXPECT_TRUE(conv_to(8, 3));
    EXPECT_EQ(conv_to(9, 3), !x86);
    EXPECT_EQ(conv_to(4, 1), !x86);
    EXPECT_EQ(conv_to(4, 3, 4), !x86);
    EXPECT_TRUE(conv_to(9, 1));
    EXPECT_TRUE(conv_to(16, 1));
    EXPECT_EQ(conv_to(16, 1, 2), !x86);
    EXPECT_EQ(conv_to(17, 1), !x86);
    const auto window_of = [&](int64_t inputs, int64_t outputs) {
      return simd_is_preferred(cpu, ConvAttrs{}, {{1, 9, 30, inputs}, {outputs, 3, 3, inputs}},
                               {1, 7, 28, outputs});
    };
    EXPECT_EQ(window_of(3, 32), cpu != Cpu::kAvx512Vnni);
    EXPECT_EQ(window_of(4, 16), cpu != Cpu::kAvx512Vnni);
    EXPECT_EQ(window_of(5, 16), !x86);
    EXPECT_EQ(window_of(4, 9), window_of(4, 16));
    EXPECT_EQ(conv_to(9, 3, 1, 16), !x86);
    EXPECT_TRUE(conv_to(9, 8, 1, 16));
    EXPECT_TRUE(conv_to(4, 1, 1, 16));
    const auto depthwise = [&](int64_t lines, int64_t columns, int64_t stride, int64_t dilation,
                               int64_t width) {
      DepthwiseConvAttrs a;
      a.strides = {1, stride}, a.dilations = {1, dilation}, a.pads = {0, 0, 0, 0};
      return simd_is_preferred(cpu, a, {{1, 9, 30, 32}, {lines, columns, 32}}, {1, 10 - lines, width, 32});
    };
    EXPECT_TRUE(depthwise(3, 3, 1, 1, 28));
    EXPECT_TRUE(depthwise(1, 5, 2, 1, 13));
    EXPECT_TRUE(depthwise(2, 3, 1, 1, 4));
    EXPECT_FALSE(depthwise(2, 3, 1, 1, 3));
    EXPECT_FALSE(depthwise(3, 4, 1, 1, 27));
    EXPECT_FALSE(depthwise(3, 3, 3, 1, 10));
    EXPECT_FALSE(depthwise(3, 3, 1, 2, 26));
    EXPECT_FALSE(depthwise(5, 5, 1, 2, 22));
    EXPECT_TRUE(depthwise(5, 7, 1, 1, 24));
    const auto to_channels = [&](int64_t channels, int64_t group, int64_t kernel) {
      QConvAttrs a;
      a.group = group;
      return simd_is_preferred(cpu, a, {{1, 9, 9, 16}, {channels, kernel, kernel, 16 / group}},
                               {1, 9, 9, channels});
    };
    EXPECT_EQ(to_channels(17, 1, 1), cpu != Cpu::kNeon);
    EXPECT_EQ(to_channels(17, 1, 3), cpu != Cpu::kNeon);
    EXPECT_EQ(to_channels(16, 1, 1), cpu != Cpu::kNeon);
    EXPECT_EQ(to_channels(16, 1, 3), cpu == Cpu::kAvx2 || cpu == Cpu::kDotprod);
    EXPECT_EQ(to_channels(32, 2, 3), cpu == Cpu::kAvx2 || cpu == Cpu::kDotprod);
    EXPECT_TRUE(to_channels(8, 1, 1));
    EXPECT_TRUE(to_channels(8, 1, 3));
    const auto rows_by_bytes = [&](int64_t rows) {
      return simd_is_preferred(cpu, QFullyConnectedAttrs{}, {{rows, 64}, {32, 64}}, {rows, 32});
    };
    EXPECT_EQ(rows_by_bytes(5), cpu != Cpu::kNeon);
    EXPECT_FALSE(rows_by_bytes(4));
    const auto product = [&](int64_t rows, bool computed) {
      return simd_is_preferred(cpu, MatMulAttrs{}, {{1, rows, 64}, {1, 64, 32}}, {1, rows, 32}, computed);
    };
    EXPECT_TRUE(product(1, true));
    EXPECT_EQ(product(1, false), !x86);
    EXPECT_EQ(product(2, true), !x86);
    EXPECT_TRUE(simd_is_preferred(cpu, FullyConnectedAttrs{}, {{1, 64}, {32, 64}}, {1, 32}));
    EXPECT_TRUE(simd_is_preferred(cpu, ConvTransposeAttrs{}, {{1, 8, 8, 4}, {4, 2, 2, 4}}, {1, 16, 16, 4}));
    EXPECT_EQ(simd_is_preferred(cpu, AvgPoolAttrs{}, {{1, 8, 8, 4}}, {1, 4, 4, 4}), x86);
    EXPECT_TRUE(simd_is_preferred(cpu, QDepthwiseConvAttrs{}, {{1, 9, 9, 32}, {3, 3, 32}}, {1, 9, 9, 32}));
    EXPECT_EQ(simd_is_preferred(cpu, MaxPoolAttrs{}, {{1, 8, 8, 4}}, {1, 4, 4, 4}),
              x86 || cpu == Cpu::kDotprod);
    EXPECT_FALSE(simd_is_preferred(cpu, AddAttrs{}, {{8}, {8}}, {8}));
    // 4 MB of pointers, one line short of it; a product of matrices has none.
    const auto lines = [&](int64_t height, int64_t stride) {
      ConvAttrs a;
      a.strides = {stride, 1};
      return simd_is_preferred(cpu, a, {{1, height * stride, 2048, 8}, {8, 1, 1, 8}}, {1, height, 2048, 8});
    };
    EXPECT_TRUE(lines(256, 2));
    EXPECT_EQ(lines(255, 2), !x86);
    EXPECT_EQ(lines(256, 1), !x86);
  }
}

// XNNPACK executes fewer instructions there, but for windows of many taps and rows of few channels.
TEST(KernelTimes, DecideOn32BitArm) {
  const auto preferred = [](const auto& attrs, const std::vector<Dims>& inputs, const Dims& output) {
    return simd_is_preferred(Cpu::kArmv7, attrs, inputs, output);
  };
  EXPECT_FALSE(preferred(ConvAttrs{}, {{1, 9, 17, 16}, {32, 3, 3, 16}}, {1, 9, 17, 32}));
  EXPECT_FALSE(preferred(ConvAttrs{}, {{1, 9, 17, 16}, {9, 1, 1, 16}}, {1, 9, 17, 9}));
  EXPECT_FALSE(preferred(ConvAttrs{}, {{1, 9, 30, 3}, {32, 3, 3, 3}}, {1, 7, 28, 32}));
  EXPECT_FALSE(preferred(DepthwiseConvAttrs{}, {{1, 9, 30, 32}, {3, 3, 32}}, {1, 7, 28, 32}));
  EXPECT_FALSE(preferred(QConvAttrs{}, {{1, 9, 9, 16}, {17, 1, 1, 16}}, {1, 9, 9, 17}));
  EXPECT_FALSE(preferred(QDepthwiseConvAttrs{}, {{1, 9, 9, 32}, {3, 3, 32}}, {1, 9, 9, 32}));
  EXPECT_TRUE(preferred(QDepthwiseConvAttrs{}, {{1, 9, 9, 32}, {7, 7, 32}}, {1, 3, 3, 32}));
  EXPECT_FALSE(preferred(QFullyConnectedAttrs{}, {{5, 64}, {32, 64}}, {5, 32}));
  EXPECT_FALSE(preferred(FullyConnectedAttrs{}, {{1, 64}, {32, 64}}, {1, 32}));
  EXPECT_FALSE(preferred(MaxPoolAttrs{}, {{1, 8, 8, 4}}, {1, 4, 4, 4}));
  EXPECT_TRUE(preferred(AddAttrs{}, {{1, 8, 8, 3}, {3}}, {1, 8, 8, 3}));
}

}  // namespace
}  // namespace sinter::convert
