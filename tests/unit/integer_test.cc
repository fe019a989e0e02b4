// Float graphs with places where they are rounded, and the integer graphs that come of them. (Values are
// compared by tests/quantize/.)
#include <gmock/gmock.h>

#include "converter/ir/integer_weights.h"
#include "converter/passes/integers/integer_form.h"
#include "converter/passes/pass.h"
#include "converter/quantize/integers/insert_quantizers.h"
#include "converter/quantize/integers/table_functions.h"
#include "converter/quantize/integers/unsuited_operations.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.emplace_back(op_info(node.op())->name);
  return names;
}

constexpr QuantParams kNarrow = {DType::kInt8, 0.05, 3}, kWide = {DType::kInt16, 0.0005, 0};

// Rounds all that is to be rounded on one scale, except as `of` states.
void quantize(Sketch& s, const QuantParams& all = kNarrow, const std::map<ValueId, QuantParams>& of = {}) {
  const std::vector<Role> roles = assign_roles(s.graph);
  std::map<ValueId, QuantParams> params = of;
  for (const ValueId id : values_to_round(s.graph, roles)) params.emplace(id, all);
  place_quantizers(s.graph, roles, params);
  EXPECT_EQ(check(s.graph), "");
  rounded_integer_form(s.graph);
  run_pass(s.graph, "dead-code-last");
  EXPECT_EQ(check(s.graph), "");
}

ValueId conv(Sketch& s, ValueId x, int64_t in, int64_t out, int64_t kernel = 1) {
  const int64_t pad = kernel / 2;
  ConvAttrs a{{1, 1}, {1, 1}, {pad, pad, pad, pad}, 1};
  a.act_min = 0;
  return s.emit(a, {x, s.constant({out, kernel, kernel, in}), s.constant({out})});
}

TEST(IntegerForm, ChainsOfProductsAndWhatIsBetween) {
  Sketch s;
  const ValueId x = s.input({1, 6, 6, 3});
  const ValueId a = conv(s, x, 3, 8, 3), b = conv(s, a, 8, 8);
  ValueId y = s.emit(AddAttrs{}, {a, b});
  y = s.emit(HardSwishAttrs{}, {y});
  y = s.emit(MaxPoolAttrs{{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}}, {y});
  y = s.emit(ViewAttrs{IntList{1, 72}}, {y});
  s.output(s.emit(FullyConnectedAttrs{}, {y, s.constant({4, 72}), s.constant({4})}));
  quantize(s);
  EXPECT_THAT(ops(s.graph),
              ElementsAre("Quantize", "QConv", "QConv", "QAdd", "Lut", "MaxPool", "View", "QFullyConnected"));
  EXPECT_EQ(s.graph.value(s.graph.outputs[0]).dtype, DType::kFloat32);
  EXPECT_EQ(s.graph.value(s.graph.outputs[0]).name, "out");
}

TEST(IntegerForm, WeightsThatAreIntegersOfAScaleStayThere) {
  Sketch s;
  const ValueId x = s.input({1, 3});
  // In the first row 101 steps of 0.013 at most, in the second no steps.
  const std::vector<float> w = {0.013f * 101, 0.013f * -77, 0.013f * 4, 1.0f, 0.333f, 0.1234f};
  const ValueId a = s.emit(FullyConnectedAttrs{},
                           {x, s.graph.add_constant(Constant::of<float>(DType::kFloat32, {2, 3}, w))});
  s.output(s.emit(FullyConnectedAttrs{}, {a, s.constant({4, 2}), s.constant({4})}));
  quantize(s);
  ASSERT_EQ(ops(s.graph)[1], "QFullyConnected");
  EXPECT_THAT(s.graph.value(s.graph.nodes[1].inputs[1]).constant->as_int64s(),
              ElementsAre(101, -77, 4, 127, 42, 16));
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return worst;
}

// As float32 graphs are computed: to_float64 is for graphs without integers.
std::vector<double> results(const Graph& graph, const std::vector<ConstantPtr>& feeds) {
  std::map<ValueId, ConstantPtr> known;
  for (size_t i = 0; i < graph.inputs.size(); ++i) known[graph.inputs[i]] = feeds[i];
  for (const Node& node : graph.nodes) {
    std::vector<ConstantPtr> inputs, outputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(id < 0 ? nullptr : graph.is_constant(id) ? graph.value(id).constant : known.at(id));
    EXPECT_TRUE(evaluate(node.attrs, inputs, node.outputs.size(), &outputs).ok()) << op_name(node.op());
    for (size_t i = 0; i < outputs.size(); ++i) known[node.outputs[i]] = outputs[i];
  }
  return known.at(graph.outputs[0])->as_doubles();
}

struct Net : Sketch {
  ValueId first = kAbsent, second = kAbsent, sum = kAbsent;
  Net() {
    first = conv(*this, input({1, 6, 6, 3}), 3, 8, 3), second = conv(*this, first, 8, 8);
    sum = emit(AddAttrs{}, {first, second});
    ValueId y = emit(TanhAttrs{}, {sum});
    y = emit(MaxPoolAttrs{{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}}, {y});
    y = emit(MulAttrs{}, {y, constant({8})});
    y = emit(ViewAttrs{IntList{1, 72}}, {y});
    output(emit(FullyConnectedAttrs{}, {y, constant({4, 72}), constant({4})}));
  }
};

TEST(IntegerForm, Int16) {
  Net s;
  const std::vector<double> exact = results(s.graph, s.feeds);
  quantize(s, kWide);
  EXPECT_THAT(ops(s.graph), ElementsAre("Quantize", "QConv", "QConv", "QAdd", "QTable", "MaxPool", "QMul",
                                        "View", "QFullyConnected"));
  for (const Node& node : s.graph.nodes)
    if (node.op() != Op::kQFullyConnected) {
      EXPECT_EQ(s.graph.value(node.outputs[0]).dtype, DType::kInt16) << op_name(node.op());
    }
  // Weights have 8 bits.
  EXPECT_LT(largest_difference(exact, results(s.graph, s.feeds)), 0.06);
}

TEST(IntegerForm, Int8AmongInt16AndTheOtherWayRound) {
  for (const bool wide : {true, false}) {
    Net plain, mixed;
    const std::vector<double> exact = results(plain.graph, plain.feeds);
    for (const ValueId other : {mixed.first, mixed.second, mixed.sum}) {
      Net s;
      quantize(s, wide ? kWide : QuantParams{DType::kInt8, 0.02, 0},
               {{other, wide ? QuantParams{DType::kInt8, 0.05, -100} : kWide}});
      const std::vector<std::string> names = ops(s.graph);
      EXPECT_EQ(std::count(names.begin(), names.end(), "Dequantize"), 0) << dump(s.graph);
      EXPECT_EQ(std::count(names.begin(), names.end(), "Quantize"), 1) << dump(s.graph);
      EXPECT_LT(largest_difference(exact, results(s.graph, s.feeds)), wide ? 0.4 : 1.0);
    }
  }
}

TEST(IntegerForm, WhatHasNoInt16RowStaysFloat) {
  Sketch s;
  const ValueId a = conv(s, s.input({1, 6, 6, 3}), 3, 8);
  const ValueId y = s.emit(SoftmaxAttrs{3}, {a});
  s.output(conv(s, y, 8, 8));
  quantize(s, kWide);
  const std::vector<std::string> names = ops(s.graph);
  EXPECT_EQ(std::count(names.begin(), names.end(), "Softmax"), 1) << dump(s.graph);
}

TEST(IntegerForm, LargeProductsWithFloatResultsStayFloat) {
  Sketch s;
  const ValueId a = conv(s, s.input({1, 40, 40, 3}), 3, 4, 3);
  s.output(s.emit(ConvAttrs{{1, 1}, {1, 1}, {0, 0, 0, 0}, 1}, {a, s.constant({64, 1, 1, 4})}));
  quantize(s);
  EXPECT_THAT(ops(s.graph), ElementsAre("Quantize", "QConv", "Dequantize", "Conv"));
}

TEST(IntegerForm, NothingIsRoundedThatNoProductReads) {
  Sketch s;
  s.output(s.emit(AddAttrs{}, {s.emit(SigmoidAttrs{}, {s.input({2, 3})}), s.input({2, 3})}));
  EXPECT_THAT(assign_roles(s.graph), Each(Role::kFloat));
  EXPECT_TRUE(values_to_round(s.graph, assign_roles(s.graph)).empty());
}

TEST(IntegerForm, NothingIsRoundedForWhatHasNoIntegerRow) {
  Sketch s;
  const ValueId a = conv(s, s.input({1, 6, 6, 3}), 3, 8, 3);
  // Slopes along an axis that is not the last.
  s.output(conv(s, s.emit(PReluAttrs{}, {a, s.constant({6, 1})}), 8, 8, 3));
  EXPECT_EQ(assign_roles(s.graph)[1], Role::kFloat);
}

TEST(IntegerForm, PublicValuesBetweenKeepTheirNames) {
  Sketch s;
  const ValueId a = conv(s, s.input({1, 4, 4, 3}), 3, 8);
  s.output(a, "between");
  s.output(s.emit(ViewAttrs{IntList{128}}, {conv(s, conv(s, a, 8, 8), 8, 8)}), "end");
  quantize(s);
  EXPECT_EQ(s.graph.value(s.graph.outputs[0]).name, "between");
  EXPECT_EQ(s.graph.value(s.graph.outputs[0]).dtype, DType::kFloat32);
  EXPECT_EQ(s.graph.value(s.graph.outputs[1]).name, "end");
}

TEST(IntegerForm, SpectraAndNormsStayFloat) {
  Sketch s;
  const ValueId a = conv(s, s.input({1, 4, 4, 3}), 3, 8), b = conv(s, a, 8, 8);
  const ValueId power = s.emit(AddAttrs{}, {s.emit(MulAttrs{}, {a, a}), s.emit(MulAttrs{}, {b, b})});
  const ValueId near = s.emit(SqrtAttrs{}, {power});
  const ValueId far = s.emit(SqrtAttrs{}, {s.emit(AddAttrs{}, {power, s.scalar(1)})});
  s.output(conv(s, conv(s, s.emit(MulAttrs{}, {near, far}), 8, 8), 8, 8));
  const std::vector<bool> steep = steep_nodes(s.graph, function_roots(s.graph));
  std::vector<ValueId> found;
  for (size_t n = 0; n < steep.size(); ++n)
    if (steep[n]) found.push_back(s.graph.nodes[n].outputs[0]);
  EXPECT_THAT(found, ElementsAre(near));
}

TEST(IntegerForm, FunctionsInSeveralNodesHaveOneRoot) {
  Sketch s;
  const ValueId x = s.input({2, 3}), y = s.input({2, 3});
  const ValueId half = s.emit(MulAttrs{}, {x, s.scalar(0.5)}), tanh = s.emit(TanhAttrs{}, {half});
  const ValueId product = s.emit(MulAttrs{}, {tanh, x}), sum = s.emit(AddAttrs{}, {product, y});
  const std::vector<ValueId> roots = function_roots(s.graph);
  const auto root = [&](ValueId id) { return roots[static_cast<size_t>(id)]; };
  EXPECT_EQ(root(half), x);
  EXPECT_EQ(root(tanh), x);
  EXPECT_EQ(root(product), x);
  EXPECT_EQ(root(sum), sum);
}

ConstantPtr weights(const std::vector<float>& w, Dims dims) {
  return Constant::of<float>(DType::kFloat32, std::move(dims), w);
}

TEST(IntegerWeights, FindsStepsAndZeroPoints) {
  const auto w = integer_weights(weights({-0.25f, 0.5f, 0.75f, 3, 0, -6}, {2, 3}), 0);
  ASSERT_TRUE(w);
  EXPECT_THAT(w->q->as_int64s(), ElementsAre(-1, 2, 3, 1, 0, -2));
  EXPECT_THAT(w->scales, ElementsAre(0.25, 3));
  EXPECT_TRUE(w->zeros.empty());
  const auto moved = integer_weights(weights({0, 1, 200, 199}, {1, 4}), 0);
  ASSERT_TRUE(moved);
  EXPECT_THAT(moved->zeros, ElementsAre(-73));
  EXPECT_THAT(moved->q->as_int64s(), ElementsAre(-73, -72, 127, 126));
}

TEST(IntegerWeights, RefusesWhatIsNoWholeNumberOfSteps) {
  EXPECT_FALSE(integer_weights(weights({0.3f, 0.511f, 0.7391f, 0.00017f}, {1, 4}), 0));
  EXPECT_FALSE(integer_weights(weights({0, 1, 256}, {1, 3}), 0));
  EXPECT_FALSE(integer_weights(weights({1, NAN}, {1, 2}), 0));
}

}  // namespace
}  // namespace sinter::convert::testing
