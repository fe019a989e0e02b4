// Chains that compute in float16 or bfloat16 on request: where they begin and end, and what stays out.
#include <functional>

#include "converter/passes/global/half_type.h"
#include "converter/passes/pass.h"
#include "platforms/onednn/platform.h"
#include "platforms/xnnpack/platform.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert::testing {
namespace {

Status accept(const OpCall& call, size_t* workspace) {
  return xnnpack_platform.accept({.architecture = Architecture::kAarch64}, call, 1, workspace);
}

HalfSummary summary;
int pass(Graph& graph) {
  summary = compute_in_half(graph, kFloat16Half, accept);
  return static_cast<int>(summary.computed);
}
// Weights rounded to 11 bits.
int apply_float16(Sketch& s) { return apply(pass, s, 4e-3); }

Status accept_bfloat16(const OpCall& call, size_t* workspace) {
  return onednn_platform.accept({.architecture = Architecture::kX86_64, .features = Feature::kAvx512Bf16},
                                call, 1, workspace);
}
// Weights rounded to 8 bits.
int apply_bfloat16(Sketch& s) {
  return apply(
      [](Graph& graph) {
        summary = compute_in_half(graph, kBFloat16Half, accept_bfloat16);
        return static_cast<int>(summary.computed);
      },
      s, 3e-2);
}

ConvAttrs conv3() {
  ConvAttrs a;
  a.strides = {1, 1}, a.dilations = {1, 1}, a.pads = {1, 1, 1, 1};
  return a;
}
ValueId half_conv(Sketch& s, ValueId x, int64_t in, int64_t out) {
  return s.emit(conv3(), {x, s.constant({out, 3, 3, in}), s.constant({out})});
}
const Value& result_of(const Graph& graph, Op op, int which = 0) {
  for (const Node& node : graph.nodes)
    if (node.op() == op && which-- == 0) return graph.value(node.outputs[0]);
  throw std::logic_error("a test expects an operation that is missing");
}
// The reason that the ledger gives for what stays float32; empty: none.
std::string kept(const Graph& graph, TypeRule rule = TypeRule::kComputeFloat16) {
  for (const TypeDecision& d : graph.ledger->all())
    if (d.rule == rule && d.effect == TypeEffect::kKept) return d.reason;
  return {};
}

TEST(Float16, ChainsCastAtTheirBordersOnly) {
  Sketch s;
  const ValueId a = half_conv(s, s.input({1, 6, 6, 3}), 3, 8);
  const ValueId b = s.emit(TransposeAttrs{{0, 2, 1, 3}}, {s.emit(HardSwishAttrs{}, {a})});
  const ValueId c = half_conv(s, b, 8, 8);
  s.output(s.emit(ConcatAttrs{3}, {s.emit(AddAttrs{}, {b, c}), c}));
  EXPECT_EQ(apply_float16(s), 4);
  EXPECT_EQ(count_ops(s.graph, Op::kCast), 2) << dump(s.graph);
  EXPECT_EQ(s.graph.nodes.front().op(), Op::kCast);
  EXPECT_EQ(s.graph.nodes.back().op(), Op::kCast);
  for (const Node& node : s.graph.nodes)
    if (&node != &s.graph.nodes.back()) {
      EXPECT_EQ(s.graph.value(node.outputs[0]).dtype, DType::kFloat16) << dump(s.graph);
    }
  EXPECT_EQ(s.graph.value(s.graph.outputs[0]).dtype, DType::kFloat32);
}

TEST(Float16, SumsOfBoundedValuesAreProven) {
  Sketch s;
  s.output(half_conv(s, s.emit(SigmoidAttrs{}, {half_conv(s, s.input({1, 6, 6, 3}), 3, 8)}), 8, 8));
  apply_float16(s);
  EXPECT_EQ(summary.computed, 3u);
  EXPECT_EQ(summary.unproven, 1u);  // the first: an input may be anything
}

TEST(Float16, SiluIsTwoOperations) {
  Sketch s;
  s.output(s.emit(SiluAttrs{}, {half_conv(s, s.input({1, 6, 6, 3}), 3, 8)}));
  EXPECT_EQ(apply_float16(s), 2);
  EXPECT_EQ(result_of(s.graph, Op::kSigmoid).dtype, DType::kFloat16);
  EXPECT_EQ(result_of(s.graph, Op::kMul).dtype, DType::kFloat16);
}

TEST(Float16, ClampedSumsAreTwoOperations) {
  Sketch s;
  const ValueId a = half_conv(s, s.input({1, 6, 6, 3}), 3, 8);
  s.output(s.emit(AddAttrs{0, 6}, {a, s.emit(TanhAttrs{}, {a})}));
  EXPECT_EQ(apply_float16(s), 3);
  EXPECT_EQ(result_of(s.graph, Op::kAdd).dtype, DType::kFloat16);
  EXPECT_EQ(result_of(s.graph, Op::kClamp).dtype, DType::kFloat16);
}

TEST(Float16, SoftmaxAndWhatGoesIntoItStayWide) {
  Sketch s;
  const ValueId a = half_conv(s, s.input({1, 4, 4, 3}), 3, 8);
  s.output(s.emit(SoftmaxAttrs{3, 0}, {s.emit(MulAttrs{}, {a, s.scalar(0.125)})}));
  EXPECT_EQ(apply_float16(s), 1);
  EXPECT_EQ(result_of(s.graph, Op::kConv).dtype, DType::kFloat16);
  EXPECT_EQ(result_of(s.graph, Op::kMul).dtype, DType::kFloat32);
  EXPECT_NE(kept(s.graph).find("softmax"), std::string::npos) << kept(s.graph);
}

// One operation behind a convolution that stays in float32, with its reason.
void expect_kept(OpAttrs attrs, const std::function<std::vector<ValueId>(Sketch&, ValueId)>& operands,
                 const std::string& reason) {
  Sketch s;
  const ValueId a = half_conv(s, s.input({1, 4, 4, 3}), 3, 8);
  s.output(s.emit(std::move(attrs), operands(s, a)));
  EXPECT_EQ(apply_float16(s), 1) << reason;
  EXPECT_NE(kept(s.graph).find(reason), std::string::npos) << kept(s.graph);
}

TEST(Float16, WhatDoesNotFitStaysWide) {
  const auto scalar = [](double v) {
    return [v](Sketch& s, ValueId a) { return std::vector<ValueId>{a, s.scalar(v)}; };
  };
  expect_kept(AddAttrs{}, scalar(-1e9), "beyond float16's range");
  expect_kept(AddAttrs{}, scalar(-65504), "too coarse for numbers near");
  expect_kept(MulAttrs{}, scalar(1e-7), "too small for float16");
  expect_kept(
      MulAttrs{},
      [](Sketch&, ValueId a) {
        return std::vector<ValueId>{a, a};
      },
      "squares");
  expect_kept(
      ClampAttrs{0, 1e6}, [](Sketch&, ValueId a) { return std::vector<ValueId>{a}; }, "the bound");
  expect_kept(
      MatMulAttrs{0, 1},
      [](Sketch&, ValueId a) {
        return std::vector<ValueId>{a, a};
      },
      "two computed values");
  expect_kept(
      conv3(),
      [](Sketch& s, ValueId a) {
        return std::vector<ValueId>{a, s.constant({2, 3, 3, 8}, -9e4, 9e4)};
      },
      "beyond float16's range");
  expect_kept(
      conv3(),
      [](Sketch& s, ValueId a) {
        return std::vector<ValueId>{a, s.constant({2, 3, 3, 8}, 1e-7, 3e-7)};
      },
      "too small for float16");
  expect_kept(
      FullyConnectedAttrs{},
      [](Sketch& s, ValueId a) {
        const ValueId long_row = s.emit(TileAttrs{{1, 1, 1, 512}}, {a});
        return std::vector<ValueId>{long_row, s.constant({2, 4096})};
      },
      "4096 terms");
}

TEST(Float16, WhatComesFromIntegersStaysWide) {
  Sketch s;
  const ValueId x = s.input({1, 4, 4, 3});
  const ValueId n = s.emit(CastAttrs{static_cast<int64_t>(DType::kInt32), 1}, {x});
  const ValueId f = s.emit(MulAttrs{}, {s.emit(CastAttrs{1, 1}, {n}), s.scalar(0.5)});
  s.output(half_conv(s, f, 3, 8));
  EXPECT_EQ(apply_float16(s), 0);
  EXPECT_NE(kept(s.graph).find("integers"), std::string::npos) << kept(s.graph);
}

TEST(Float16, ElementwiseOperationsAloneAreNotWorthCasts) {
  Sketch s;
  s.output(s.emit(SigmoidAttrs{}, {s.emit(AddAttrs{}, {s.input({4}), s.scalar(1)})}));
  EXPECT_EQ(apply_float16(s), 0);
  EXPECT_EQ(count_ops(s.graph, Op::kCast), 0);
}

// In a model with float16 values its float32 values are meant to be that; bfloat16 is never narrowed.
TEST(Float16, TheModelsOwnTypesDecide) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    Sketch s;
    const ValueId a = half_conv(s, s.input({1, 4, 4, 3}), 3, 8), b = half_conv(s, a, 8, 8);
    s.graph.value(a).name = "first", s.graph.value(a).model_dtype = type;
    s.output(b);
    EXPECT_EQ(apply_float16(s), 1);
    EXPECT_EQ(result_of(s.graph, Op::kConv, type == DType::kFloat16 ? 0 : 1).dtype, DType::kFloat16);
    EXPECT_EQ(result_of(s.graph, Op::kConv, type == DType::kFloat16 ? 1 : 0).dtype, DType::kFloat32);
  }
}

// float16 inputs, outputs and weights of the model are read and written as they are.
TEST(Float16, TheModelsCastsGo) {
  Sketch s;
  const ValueId x = s.input({1, 4, 4, 3});
  const auto to = [&](ValueId id, DType t) { return s.emit(CastAttrs{static_cast<int64_t>(t), 1}, {id}); };
  const ValueId a = half_conv(s, to(to(x, DType::kFloat16), DType::kFloat32), 3, 8);
  const ValueId h = to(a, DType::kFloat16);
  const ValueId y = half_conv(s, to(h, DType::kFloat32), 8, 8);
  s.output(to(y, DType::kFloat16), "half");
  s.output(h, "middle");
  EXPECT_EQ(apply_float16(s), 2);
  EXPECT_EQ(count_ops(s.graph, Op::kCast), 1) << dump(s.graph);  // of the input
  EXPECT_EQ(count_ops(s.graph, Op::kCopy), 2);                   // to the public names; they cost nothing
}

// Movement joins; what has no kernel computes in float32 between Casts.
TEST(BFloat16, ChainsCastAtTheirBordersOnly) {
  Sketch s;
  const ValueId a = half_conv(s, s.input({1, 6, 6, 3}), 3, 8);
  const ValueId b = half_conv(s, s.emit(TransposeAttrs{{0, 2, 1, 3}}, {a}), 8, 8);
  s.output(half_conv(s, s.emit(GeluAttrs{}, {b}), 8, 8));
  EXPECT_EQ(apply_bfloat16(s), 3);
  EXPECT_EQ(count_ops(s.graph, Op::kCast), 4) << dump(s.graph);
  EXPECT_EQ(result_of(s.graph, Op::kTranspose).dtype, DType::kBFloat16);
  EXPECT_EQ(result_of(s.graph, Op::kGelu).dtype, DType::kFloat32);
  EXPECT_NE(kept(s.graph, TypeRule::kComputeBfloat16).find("Gelu is kept in float32"), std::string::npos);
}

// What float16's range and sums refuse.
TEST(BFloat16, NothingIsRefusedForItsRange) {
  Sketch s;
  const ValueId a = half_conv(s, s.input({1, 4, 4, 3}), 3, 8);
  const ValueId b = s.emit(conv3(), {a, s.constant({2, 3, 3, 8}, -9e4, 9e4)});
  const ValueId row = s.emit(TileAttrs{{1, 1, 1, 2048}}, {b});
  s.output(s.emit(FullyConnectedAttrs{}, {row, s.constant({2, 4096}, 1e-7, 3e-7)}));
  EXPECT_EQ(apply_bfloat16(s), 3);
  EXPECT_EQ(summary.unproven, 0u);
}

TEST(BFloat16, WhatComesFromIntegersStaysWide) {
  Sketch s;
  const ValueId n = s.emit(CastAttrs{static_cast<int64_t>(DType::kInt32), 1}, {s.input({1, 4, 4, 3})});
  s.output(half_conv(s, s.emit(CastAttrs{1, 1}, {n}), 3, 8));
  EXPECT_EQ(apply_bfloat16(s), 0);
  EXPECT_NE(kept(s.graph, TypeRule::kComputeBfloat16).find("bfloat16 may not hold"), std::string::npos);
}

// float16 values of a model have more bits.
TEST(BFloat16, TheModelsOwnTypesDecide) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    Sketch s;
    const ValueId a = half_conv(s, s.input({1, 4, 4, 3}), 3, 8), b = half_conv(s, a, 8, 8);
    s.graph.value(a).name = "first", s.graph.value(a).model_dtype = type;
    s.output(b);
    EXPECT_EQ(apply_bfloat16(s), 1);
    EXPECT_EQ(result_of(s.graph, Op::kConv, type == DType::kBFloat16 ? 0 : 1).dtype, DType::kBFloat16);
  }
}

}  // namespace
}  // namespace sinter::convert::testing
