// Float graphs with places where they are rounded, and the integer graphs that come of them. (Values are
// compared by tests/quantize/.)
#include <gmock/gmock.h>

#include "converter/passes/pass.h"
#include "converter/quantize/functions.h"
#include "converter/quantize/integer_weights.h"
#include "converter/quantize/place.h"
#include "converter/quantize/steep.h"
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

// Rounds all that is to be rounded on one grid.
void quantize(Sketch& s) {
  const std::vector<Role> roles = assign_roles(s.graph);
  std::map<ValueId, QuantParams> params;
  for (const ValueId id : values_to_round(s.graph, roles)) params[id] = {DType::kInt8, 0.05, 3};
  place_quantizers(s.graph, roles, params);
  EXPECT_EQ(check(s.graph), "");
  run_pass(s.graph, "integer");
  run_pass(s.graph, "dead-code-last");
  EXPECT_EQ(check(s.graph), "");
}

ValueId conv(Sketch& s, ValueId x, int64_t in, int64_t out, int64_t kernel = 1) {
  const int64_t pad = kernel / 2;
  ConvAttrs a{{1, 1}, {1, 1}, {pad, pad, pad, pad}, 1};
  a.act_min = 0;
  return s.emit(a, {x, s.constant({out, kernel, kernel, in}), s.constant({out})});
}

TEST(IntegerForm, ChainsOfProductsAndWhatLiesBetween) {
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

TEST(IntegerForm, WeightsOnAGridStayThere) {
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

TEST(IntegerForm, LargeProductsWithFloatResultsStayFloat) {
  Sketch s;
  const ValueId a = conv(s, s.input({1, 40, 40, 3}), 3, 8, 3);
  s.output(s.emit(ConvAttrs{{1, 1}, {1, 1}, {0, 0, 0, 0}, 1}, {a, s.constant({64, 1, 1, 8})}));
  quantize(s);
  EXPECT_THAT(ops(s.graph), ElementsAre("Quantize", "QConv", "Dequantize", "Conv"));
}

TEST(IntegerForm, NothingIsRoundedThatNoProductReads) {
  Sketch s;
  s.output(s.emit(AddAttrs{}, {s.emit(SigmoidAttrs{}, {s.input({2, 3})}), s.input({2, 3})}));
  EXPECT_THAT(assign_roles(s.graph), Each(Role::kFloat));
  EXPECT_TRUE(values_to_round(s.graph, assign_roles(s.graph)).empty());
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
  EXPECT_THAT(w->q, ElementsAre(-1, 2, 3, 1, 0, -2));
  EXPECT_THAT(w->scales, ElementsAre(0.25, 3));
  EXPECT_TRUE(w->zeros.empty());
  const auto moved = integer_weights(weights({0, 1, 200, 199}, {1, 4}), 0);
  ASSERT_TRUE(moved);
  EXPECT_THAT(moved->zeros, ElementsAre(-73));
  EXPECT_THAT(moved->q, ElementsAre(-73, -72, 127, 126));
}

TEST(IntegerWeights, RefusesWhatIsNoWholeNumberOfSteps) {
  EXPECT_FALSE(integer_weights(weights({0.3f, 0.511f, 0.7391f, 0.00017f}, {1, 4}), 0));
  EXPECT_FALSE(integer_weights(weights({0, 1, 256}, {1, 3}), 0));
  EXPECT_FALSE(integer_weights(weights({1, NAN}, {1, 2}), 0));
}

}  // namespace
}  // namespace sinter::convert::testing
