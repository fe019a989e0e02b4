// Lowering rules: what the whole-model suites do not reach: every refusal in one run, weak literals, forms of
// old operator sets, lengths that depend on data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "converter/import/lower.h"

namespace sinter::convert {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ImportedTensor tensor(const std::string& name, ConstantPtr data) {
  ImportedTensor t;
  t.name = name;
  t.dtype = data->dtype();
  t.onnx_type = dtype_to_onnx(t.dtype);
  t.dims = data->dims();
  t.data = std::move(data);
  return t;
}

ConstantPtr floats(Dims dims, const std::vector<float>& items) {
  return Constant::of<float>(DType::kFloat32, std::move(dims), std::span<const float>(items));
}
ConstantPtr int64s(const std::vector<int64_t>& items) { return Constant::int64s(items); }

ImportedAttribute attribute(const std::string& name, int64_t i) {
  ImportedAttribute a;
  a.name = name;
  a.kind = ImportedAttribute::Kind::kInt;
  a.i = i;
  return a;
}

// A model under construction; every value that is not an initializer or a node's result is an input.
struct Model {
  ImportedModel model;
  int opset = 17;

  void constant(const std::string& name, ConstantPtr data) {
    model.graph.initializers.push_back(tensor(name, std::move(data)));
  }
  void input(const std::string& name, DType dtype, const Dims& dims) {
    ImportedValueInfo v;
    v.name = name;
    v.dtype = dtype;
    v.onnx_type = dtype_to_onnx(dtype);
    v.has_shape = true;
    for (const int64_t d : dims) v.dims.push_back({d, {}});
    model.graph.inputs.push_back(v);
  }
  void node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs,
            std::vector<ImportedAttribute> attributes = {}) {
    ImportedNode n;
    n.op_type = op;
    n.name = "the_" + op;
    n.inputs = std::move(inputs);
    n.outputs = std::move(outputs);
    n.attributes = std::move(attributes);
    n.opset = opset;
    model.graph.nodes.push_back(n);
  }
  std::optional<Graph> lower(Diagnostics* d) {
    for (const std::string& name : model.graph.nodes.back().outputs) {
      ImportedValueInfo v;
      v.name = name;
      model.graph.outputs.push_back(v);
    }
    return lower_model(model, {}, *d);
  }
  std::string refusals() {
    Diagnostics d;
    EXPECT_FALSE(lower(&d).has_value());
    return d.to_text(Severity::kRefusal);
  }
  // The first output, which must fold to a constant.
  ConstantPtr folded() {
    Diagnostics d;
    const auto graph = lower(&d);
    EXPECT_TRUE(graph) << d.to_text();
    if (!graph) return Constant::scalar(DType::kFloat32, 0);
    ValueId v = graph->outputs.at(0);
    for (const Node& n : graph->nodes)
      if (n.op() == Op::kCopy && n.outputs[0] == v) v = n.inputs[0];
    EXPECT_TRUE(graph->is_constant(v));
    return graph->is_constant(v) ? graph->value(v).constant : Constant::scalar(DType::kFloat32, 0);
  }
};

TEST(Lowering, RulesAreUnique) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const auto& family : onnx_operators())
    for (const OnnxOperator& rule : family)
      EXPECT_TRUE(seen.insert({rule.domain, rule.op_type}).second) << rule.domain << ":" << rule.op_type;
  EXPECT_GT(seen.size(), 150u);
}

TEST(Lowering, RowsOfOperatorsAreWhole) {
  for (const auto& family : onnx_operators())
    for (const OnnxOperator& op : family) {
      EXPECT_TRUE(op.lower != nullptr) << op.op_type;
      EXPECT_GE(op.since, 1) << op.op_type;
      EXPECT_LE(op.since, kNewestOpset) << op.op_type;
      EXPECT_TRUE(op.domain.empty() || op.since == 1) << op.op_type;
      // One letter and one space in turn; the last may be a plus instead of a space.
      const std::string_view words = op.operands;
      for (size_t i = 0; i < words.size(); ++i)
        EXPECT_TRUE(i % 2 == 0 ? std::string_view("NFBIAnfaibmpqe*").find(words[i]) != words.npos
                               : words[i] == ' ' || (words[i] == '+' && i + 1 == words.size()))
            << op.op_type;
      EXPECT_TRUE(!words.empty() || !(op.has(kDivides) || op.has(kGrows) || op.has(kSumsProducts) ||
                                      op.has(kInt32Sums) || op.has(kFractions)))
          << op.op_type;
    }
}

// The largest elements of integers are as large as these, whatever the length of the axis.
TEST(Lowering, ValuesOfTopKAreNotPositions) {
  for (const bool positions : {false, true}) {
    Model m;
    m.input("x", DType::kInt64, {8});
    m.input("f", DType::kFloat32, {1});
    m.constant("k", int64s({1}));
    if (positions) m.node("Cast", {"x"}, {"of"}, {attribute("to", 1)});
    m.node("TopK", {positions ? "of" : "x", "k"}, {"values", "at"});
    m.node("Add", {positions ? "at" : "values", "f"}, {"y"});
    Diagnostics d;
    const auto graph = m.lower(&d);
    ASSERT_TRUE(graph) << d.to_text();
    EXPECT_EQ(graph->value(graph->outputs[0]).dtype, positions ? DType::kFloat32 : DType::kFloat64);
  }
}

TEST(Lowering, EveryRefusalInOneRunAndOnlyRootCauses) {
  Model m;
  m.input("x", DType::kFloat32, {2, 3});
  m.node("Frobnicate", {"x"}, {"a"});
  m.node("Relu", {"a"}, {"b"});  // silent: its operand is unknown
  m.node("Relu", {"x"}, {"c"}, {attribute("slope", 1)});
  m.node("Neg", {"x", "x"}, {"d"});
  m.node("Concat", {"x", "b", "c", "d"}, {"y"}, {attribute("axis", 0)});
  const std::string text = m.refusals();
  EXPECT_THAT(text, HasSubstr("operator Frobnicate is not supported"));
  EXPECT_THAT(text, HasSubstr("attribute 'slope'"));
  EXPECT_THAT(text, HasSubstr("node 'the_Neg' (Neg): input 1"));
  EXPECT_THAT(text, Not(HasSubstr("Concat")));
}

// The limit on folding is there for what grows out of little.
TEST(Lowering, LargeWeightsMayBeFoldedManyTimes) {
  Model m;
  m.constant("w", Constant::owned(DType::kFloat32, {512, 512}, Bytes(1 << 20)));
  std::string w = "w";
  for (int i = 0; i < 9; ++i) {
    const std::string next = "t" + std::to_string(i);
    m.node("Transpose", {w}, {next});
    w = next;
  }
  for (ImportedNode& n : m.model.graph.nodes) n.name += n.outputs[0];
  LoweringOptions options;
  options.most_operations = 20;
  Diagnostics d;
  m.model.graph.outputs.push_back({});
  m.model.graph.outputs.back().name = w;
  EXPECT_TRUE(lower_model(m.model, options, d).has_value()) << d.to_text();
}

TEST(Lowering, RefusesWhatGrowsOutOfLittleAndNamesTheNode) {
  Model m;
  m.constant("w", floats({1}, {1}));
  std::string w = "w";
  for (int i = 0; i < 12; ++i) {
    const std::string next = "c" + std::to_string(i);
    m.node("Concat", {w, w, w, w}, {next}, {attribute("axis", 0)});
    w = next;
  }
  for (ImportedNode& n : m.model.graph.nodes) n.name = n.outputs[0];
  LoweringOptions options;
  options.most_operations = 20;
  Diagnostics d;
  m.model.graph.outputs.push_back({});
  m.model.graph.outputs.back().name = w;
  EXPECT_FALSE(lower_model(m.model, options, d).has_value());
  const std::string text = d.to_text(Severity::kRefusal);
  EXPECT_THAT(text, HasSubstr("node 'c"));
  EXPECT_THAT(text, HasSubstr("folding the model's constants"));
  EXPECT_THAT(text, Not(HasSubstr("loops")));
}

TEST(Lowering, TakesOperatorsNewerThanTheirOpsetAsTheyWereFirst) {
  Model m;
  m.opset = 12;
  m.input("x", DType::kFloat32, {2});
  m.node("Gelu", {"x"}, {"y"});
  Diagnostics d;
  const auto graph = m.lower(&d);
  ASSERT_TRUE(graph) << d.to_text();
  EXPECT_EQ(graph->nodes.at(0).op(), Op::kGelu);
  EXPECT_THAT(
      d.to_text(Severity::kWarning),
      HasSubstr("Gelu was introduced with opset 20, but the model imports 12; it is read as in opset 20"));
}

TEST(Lowering, OldBroadcastAttributes) {
  Model m;
  m.opset = 6;
  m.constant("a", floats({2, 2, 1}, {0, 0, 0, 0}));
  m.constant("b", floats({2}, {1, 2}));
  m.node("Add", {"a", "b"}, {"y"}, {attribute("broadcast", 1), attribute("axis", 1)});
  const ConstantPtr y = m.folded();
  EXPECT_EQ(y->dims(), (Dims{2, 2, 1}));
  EXPECT_THAT(y->as_doubles(), ElementsAre(1, 2, 1, 2));
}

TEST(Lowering, OldSoftmaxSeesAMatrix) {
  Model m;
  m.opset = 11;
  m.constant("x", floats({1, 2, 2}, {0, 0, 0, 0}));
  m.node("Softmax", {"x"}, {"y"});
  EXPECT_THAT(m.folded()->as_doubles(), ElementsAre(0.25, 0.25, 0.25, 0.25));
}

TEST(Lowering, QuantizedWeightsAreDequantizedOnce) {
  // Beyond what folding may otherwise add to a file.
  constexpr int64_t kRows = 3, kColumns = 40000;
  std::vector<int8_t> items;
  for (int64_t i = 0; i < kRows * kColumns; ++i) items.push_back(static_cast<int8_t>(i));
  Model m;
  m.constant("q", Constant::of<int8_t>(DType::kInt8, {kRows, kColumns}, items));
  m.constant("scale", floats({kRows}, {0.5f, 1, 2}));
  m.constant("zero", Constant::of<int8_t>(DType::kInt8, {kRows}, std::vector<int8_t>{1, 0, -1}));
  m.node("DequantizeLinear", {"q", "scale", "zero"}, {"w"}, {attribute("axis", 0)});
  const ConstantPtr w = m.folded();
  EXPECT_EQ(w->dtype(), DType::kFloat32);
  ASSERT_EQ(w->dims(), (Dims{kRows, kColumns}));
  EXPECT_TRUE(w->is_lazy());  // the converter's memory does not grow with it
  const std::vector<double> got = w->as_doubles();
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kColumns; ++c) {
      const auto i = static_cast<size_t>(r * kColumns + c);
      ASSERT_EQ(got[i], (items[i] + r - 1) * (r == 0 ? 0.5 : r == 1 ? 1 : 2)) << r << ", " << c;
    }
}

TEST(Lowering, SliceWithExtremeBounds) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  const auto sliced = [](int64_t start, int64_t end, int64_t step) {
    Model m;
    m.constant("x", int64s({0, 1, 2, 3}));
    m.constant("starts", int64s({start}));
    m.constant("ends", int64s({end}));
    m.constant("axes", int64s({-1}));
    m.constant("steps", int64s({step}));
    m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
    return m.folded()->as_int64s();
  };
  EXPECT_THAT(sliced(0, kMost, 1), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sliced(-1, kLeast, -1), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(sliced(kMost, kLeast, -2), ElementsAre(3, 1));
  EXPECT_THAT(sliced(kLeast, -1, 2), ElementsAre(0, 2));
  EXPECT_THAT(sliced(0, kMost, kMost), ElementsAre(0));
  EXPECT_THAT(sliced(-1, kLeast, kLeast), ElementsAre(3));
  EXPECT_THAT(sliced(2, 2, 1), ElementsAre());
}

TEST(Lowering, WeakLiterals) {
  const auto type_of_sum = [](DType value, ConstantPtr literal) {
    Model m;
    m.input("x", value, {4});
    m.constant("c", std::move(literal));
    m.node("Add", {"x", "c"}, {"y"});
    Diagnostics d;
    const auto graph = m.lower(&d);
    EXPECT_TRUE(graph) << d.to_text();
    return graph ? graph->value(graph->outputs[0]).dtype : DType::kNone;
  };
  EXPECT_EQ(type_of_sum(DType::kFloat16, Constant::scalar(DType::kFloat32, 0.25)), DType::kFloat16);
  // Not a float16 number: the sum is computed in float32, as all of them are in the end, and nothing is lost.
  EXPECT_EQ(type_of_sum(DType::kFloat16, Constant::scalar(DType::kFloat32, 0.1)), DType::kFloat32);
  EXPECT_EQ(type_of_sum(DType::kFloat32, Constant::scalar(DType::kFloat64, 0.1)), DType::kFloat32);
  // 1e6 is beyond float16: the value is kept instead.
  EXPECT_EQ(type_of_sum(DType::kFloat16, Constant::scalar(DType::kFloat32, 1e6)), DType::kFloat32);
  EXPECT_EQ(type_of_sum(DType::kInt32, Constant::scalar(DType::kFloat32, 2)), DType::kInt32);
  EXPECT_EQ(type_of_sum(DType::kInt16, Constant::scalar(DType::kFloat32, 0.5)), DType::kFloat32);
  // Not every int32 is a float32 number.
  EXPECT_EQ(type_of_sum(DType::kInt32, Constant::scalar(DType::kFloat32, 0.5)), DType::kFloat64);
  EXPECT_EQ(type_of_sum(DType::kInt8, Constant::scalar_int(DType::kInt64, 300)), DType::kInt64);
}

TEST(Lowering, RefusalsNameTheNodeThatLacksAnOperand) {
  for (const char* op : {"Conv", "ConvTranspose", "MatMul", "Gemm"}) {
    Model m;
    m.input("x", DType::kFloat32, {1, 2, 4, 4});
    m.node(op, {"x"}, {"y"});
    EXPECT_THAT(m.refusals(), HasSubstr(std::string("the_") + op));
  }
}

TEST(Lowering, LengthsThatDependOnDataAreFollowedOrRefused) {
  Model m;
  m.input("x", DType::kFloat32, {5});
  m.node("NonZero", {"x"}, {"at"});
  m.node("Transpose", {"at"}, {"rows"});
  Diagnostics d;
  const auto graph = m.lower(&d);
  ASSERT_TRUE(graph) << d.to_text();
  const Value& rows = graph->value(graph->outputs[0]);
  EXPECT_EQ(rows.dims, (Dims{5, 1}));
  ASSERT_EQ(rows.bounded_dims.size(), 1u);
  EXPECT_EQ(rows.bounded_dims[0].axis, 0);

  Model bad;
  bad.input("x", DType::kFloat32, {5});
  bad.node("NonZero", {"x"}, {"at"});
  bad.node("EyeLike", {"at"}, {"y"});
  EXPECT_THAT(bad.refusals(), HasSubstr("dimension 1 of operand 'at' is bounded (at most 5)"));
  Model shape;
  shape.input("x", DType::kFloat32, {5});
  shape.node("NonZero", {"x"}, {"at"});
  shape.node("Shape", {"at"}, {"y"});
  Diagnostics told;
  const auto lengths = shape.lower(&told);
  ASSERT_TRUE(lengths) << told.to_text();
  EXPECT_EQ(lengths->value(lengths->outputs[0]).dims, (Dims{2}));
  EXPECT_TRUE(lengths->value(lengths->outputs[0]).bounded_dims.empty());
}

// Only the model's outputs keep their lengths: passes may ignore those of other values.
TEST(Lowering, InnerValuesHaveNoLengths) {
  Model m;
  m.input("x", DType::kFloat32, {5});
  m.node("NonZero", {"x"}, {"at"});
  m.node("Neg", {"at"}, {"minus"});
  m.node("Transpose", {"minus"}, {"y"});
  Diagnostics d;
  const auto graph = m.lower(&d);
  ASSERT_TRUE(graph) << d.to_text();
  for (size_t i = 0; i < graph->values.size(); ++i)
    EXPECT_EQ(graph->values[i].bounded_dims.size(), graph->is_output(static_cast<ValueId>(i)) ? 1u : 0u) << i;
}

TEST(Lowering, NonZeroOfAConstantHasItsLength) {
  Model m;
  m.constant("x", floats({4}, {0, 3, 0, 4}));
  m.node("NonZero", {"x"}, {"at"});
  const ConstantPtr at = m.folded();
  EXPECT_EQ(at->dims(), (Dims{1, 2}));
  EXPECT_THAT(at->as_int64s(), ElementsAre(1, 3));
}

TEST(Lowering, AbsurdSizesAreRefused) {
  Model m;
  m.input("x", DType::kBFloat16, {4, int64_t{1} << 40});
  m.node("Trilu", {"x"}, {"y"});
  EXPECT_THAT(m.refusals(), HasSubstr("too long"));
  Model r;
  r.constant("a", Constant::scalar_int(DType::kInt64, 0));
  r.constant("b", Constant::scalar_int(DType::kInt64, int64_t{1} << 60));
  r.constant("c", Constant::scalar_int(DType::kInt64, 1));
  r.node("Range", {"a", "b", "c"}, {"y"});
  EXPECT_THAT(r.refusals(), HasSubstr("too many"));
}

TEST(Lowering, BatchNormalizationFoldsInDouble) {
  Model m;
  m.input("x", DType::kFloat32, {1, 2, 3});
  for (const char* name : {"scale", "bias", "mean", "var"}) m.constant(name, floats({2}, {1, 2}));
  m.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"y"});
  Diagnostics d;
  const auto graph = m.lower(&d);
  ASSERT_TRUE(graph) << d.to_text();
  ASSERT_EQ(graph->nodes.size(), 2u);
  EXPECT_EQ(graph->nodes[0].op(), Op::kMul);
  EXPECT_EQ(graph->nodes[1].op(), Op::kAdd);
  const auto factor = graph->value(graph->nodes[0].inputs[1]).constant->as_doubles();
  EXPECT_EQ(factor[1],
            static_cast<double>(static_cast<float>(2 / std::sqrt(2 + static_cast<double>(1e-5f)))));
}

TEST(Lowering, ReshapeFaults) {
  const auto refused = [](const std::vector<int64_t>& shape) {
    Model m;
    m.input("x", DType::kFloat32, {2, 3});
    m.constant("s", int64s(shape));
    m.node("Reshape", {"x", "s"}, {"y"});
    return m.refusals();
  };
  EXPECT_THAT(refused({4, 2}), HasSubstr("6 elements of [2,3] do not fit shape [4,2]"));
  EXPECT_THAT(refused({-1, -1}), HasSubstr("two dims open"));
  EXPECT_THAT(refused({2, 3, 0}), HasSubstr("copies dim 2"));
  EXPECT_THAT(refused({int64_t{1} << 40, int64_t{1} << 40}), HasSubstr("impossible"));
}

}  // namespace
}  // namespace sinter::convert
