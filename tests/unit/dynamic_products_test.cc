// Which products of dynamically quantized values are computed on integers, and that the numbers stay the
// same.
#include "converter/passes/passes.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {

namespace testing {
namespace {

// The outputs in the types that they have.
std::vector<std::vector<double>> results_of(const Graph& graph, const std::vector<ConstantPtr>& feeds) {
  std::map<ValueId, ConstantPtr> known;
  for (size_t i = 0; i < graph.inputs.size(); ++i) known[graph.inputs[i]] = feeds[i];
  const auto get = [&](ValueId id) {
    return graph.is_constant(id) ? graph.value(id).constant : known.at(id);
  };
  for (const Node& node : graph.nodes) {
    std::vector<ConstantPtr> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(get(id));
    EXPECT_TRUE(evaluate(node.attrs, inputs, node.outputs.size(), &outputs).ok()) << op_name(node.op());
    for (size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i] >= 0) known[node.outputs[i]] = outputs[i];
  }
  std::vector<std::vector<double>> results;
  for (const ValueId id : graph.outputs) results.push_back(get(id)->as_doubles());
  return results;
}

// Runs the pass, which changes no number.
int apply(Sketch& s) {
  const auto before = results_of(s.graph, s.feeds);
  advance(s.graph, Stage::kRewritten);
  const int changes = dynamic_products(s.graph);
  EXPECT_EQ(check(s.graph), "") << dump(s.graph);
  EXPECT_EQ(results_of(s.graph, s.feeds), before) << dump(s.graph);
  return changes;
}

// DynamicQuantize, and a product of integers by a constant, as MatMulInteger is lowered.
struct DynamicProduct : Sketch {
  int64_t depth = 40;
  double low = -2;  // of x
  DType weights = DType::kInt8;
  double weight_zero = 0, lowest = -100, highest = 100;
  bool zero_point = true, other_zero_point = false, reads_sum = false;

  std::vector<ValueId> quantized(ValueId x) {
    Builder builder(graph);
    std::vector<ValueId> results;
    EXPECT_TRUE(builder.emit(DynamicQuantizeAttrs{}, {x}, 3, &results).ok());
    return results;
  }
  void build() {
    const ValueId x = input({3, depth}, low, 2);
    const std::vector<ValueId> q = quantized(x);
    const std::vector<ValueId> other = other_zero_point ? quantized(input({4})) : q;
    ValueId numbers = emit(to(DType::kInt32), {q[0]});
    if (zero_point) numbers = emit(SubAttrs{}, {numbers, emit(to(DType::kInt32), {other[2]})});
    ValueId w = emit(to(DType::kInt32), {emit(to(weights), {constant({24, depth}, lowest, highest)})});
    if (weight_zero != 0) w = emit(SubAttrs{}, {w, emit(to(DType::kInt32), {scalar(weight_zero)})});
    const ValueId sum = emit(FullyConnectedAttrs{}, {numbers, w});
    output(emit(MulAttrs{}, {emit(to(DType::kFloat32), {sum}), q[1]}));
    if (reads_sum) output(sum, "sum");
  }
};

TEST(DynamicProducts, OfBytes) {
  for (const bool zero_point : {true, false})
    for (const double low : {-2.0, 0.0, 0.5, 1.9}) {
      DynamicProduct p;
      p.zero_point = zero_point, p.low = low;
      p.build();
      EXPECT_GT(apply(p), 0);
      EXPECT_EQ(count_ops(p.graph, Op::kQFullyConnected), 1);
      EXPECT_EQ(count_ops(p.graph, Op::kFullyConnected), 0);
      EXPECT_EQ(count_ops(p.graph, Op::kDynamicQuantize), 1);
    }
}

TEST(DynamicProducts, OfWeightsWithZeroPoints) {
  for (const double zero : {1.0, 100.0, 128.0, 255.0}) {
    DynamicProduct p;
    p.weights = DType::kUint8, p.lowest = 0, p.highest = 256, p.weight_zero = zero;
    p.build();
    EXPECT_GT(apply(p), 0);
    EXPECT_EQ(count_ops(p.graph, Op::kQFullyConnected), 1);
  }
}

TEST(DynamicProducts, StatesThatAWeightIsTheLowest) {
  for (const double lowest : {-127.4, -129.0}) {
    DynamicProduct p;
    p.lowest = p.highest = lowest;
    p.build();
    EXPECT_GT(apply(p), 0);
    for (const Node& node : p.graph.nodes)
      if (const auto* a = node.as<QFullyConnectedAttrs>()) {
        EXPECT_EQ(a->wide_weights, lowest < -128);
      }
  }
}

TEST(DynamicProducts, OneQuantizationForAllProducts) {
  Sketch s;
  Builder builder(s.graph);
  std::vector<ValueId> q;
  EXPECT_TRUE(builder.emit(DynamicQuantizeAttrs{}, {s.input({3, 40})}, 3, &q).ok());
  const ValueId less =
      s.emit(SubAttrs{}, {s.emit(to(DType::kInt32), {q[0]}), s.emit(to(DType::kInt32), {q[2]})});
  for (const char* name : {"a", "b"}) {
    const ValueId w = s.emit(to(DType::kInt32), {s.emit(to(DType::kInt8), {s.constant({8, 40}, -90, 90)})});
    s.output(s.emit(to(DType::kFloat32), {s.emit(FullyConnectedAttrs{}, {less, w})}), name);
  }
  EXPECT_GT(apply(s), 0);
  EXPECT_EQ(count_ops(s.graph, Op::kQFullyConnected), 2);
  EXPECT_EQ(count_ops(s.graph, Op::kDynamicQuantize), 1);
}

// As ConvInteger is lowered: x and the sums are channels-first, and beyond the edges is the zero point.
TEST(DynamicProducts, OfConvolutions) {
  for (const int64_t group : {1, 2})
    for (const bool zero_point : {true, false})
      for (const int64_t pad : {0, 2}) {
        Sketch s;
        Builder builder(s.graph);
        std::vector<ValueId> q;
        EXPECT_TRUE(builder.emit(DynamicQuantizeAttrs{}, {s.input({2, 4, 6, 5}, -1, 2)}, 3, &q).ok());
        ValueId x = s.emit(to(DType::kInt32), {q[0]});
        if (zero_point) x = s.emit(SubAttrs{}, {x, s.emit(to(DType::kInt32), {q[2]})});
        x = s.emit(TransposeAttrs{IntList{0, 2, 3, 1}}, {x});
        const ValueId w = s.emit(to(DType::kInt32),
                                 {s.emit(to(DType::kInt8), {s.constant({6, 3, 2, 4 / group}, -100, 100)})});
        const ValueId sum = s.emit(ConvAttrs{{2, 1}, {1, 2}, {pad, 1, 0, pad}, group}, {x, w});
        s.output(s.emit(to(DType::kFloat32), {s.emit(TransposeAttrs{IntList{0, 3, 1, 2}}, {sum})}));
        EXPECT_GT(apply(s), 0);
        EXPECT_EQ(count_ops(s.graph, Op::kQConv), 1);
        EXPECT_EQ(count_ops(s.graph, Op::kConv), 0);
      }
}

TEST(DynamicProducts, NotWhereSomethingElseIsMeant) {
  DynamicProduct read, other, wide, deep;
  read.reads_sum = true;
  other.other_zero_point = true;
  wide.weights = DType::kInt16, wide.lowest = -200, wide.highest = 200;
  deep.depth = 65537;
  for (DynamicProduct* p : {&read, &other, &wide, &deep}) {
    p->build();
    EXPECT_EQ(dynamic_products(p->graph), 0);
    EXPECT_EQ(count_ops(p->graph, Op::kFullyConnected), 1);
  }
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
