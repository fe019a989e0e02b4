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

// Others read the sums as integers: exact where the weights prove that float32 holds them.
TEST(DynamicProducts, OfSumsThatAreRead) {
  for (const double highest : {100.0, -99.0})
    for (const int64_t depth : {40, 1100}) {
      DynamicProduct p;
      p.reads_sum = true, p.depth = depth, p.highest = highest;
      p.build();
      const bool exact =
          depth == 40 || highest > 0;  // 1100 * 100 * 255 > 2^24 where all weights are near -100
      EXPECT_EQ(apply(p) > 0, exact);
      EXPECT_EQ(count_ops(p.graph, Op::kQFullyConnected), exact ? 1 : 0);
    }
}

// Two zero points of different quantizations are numbers like any other.
TEST(DynamicProducts, OfAnotherZeroPoint) {
  DynamicProduct p;
  p.other_zero_point = true;
  p.build();
  EXPECT_GT(apply(p), 0);
  EXPECT_EQ(count_ops(p.graph, Op::kQFullyConnected), 1);
}

// x that nothing has quantized in this graph, with zero points that are absent, constant, or inputs.
struct PlainProduct : Sketch {
  DType type = DType::kUint8;
  enum { kNone, kConstant, kComputed } zero = kNone;
  int64_t group = 1;
  bool depthwise = false, cast = true;
  double highest = 100;  // of the weights, int8 or, above 127, uint8
  std::vector<int64_t> pads = {1, 0, 2, 1};

  void build() {
    const double low = type == DType::kUint8 ? 0 : -128;
    ValueId x = emit(to(DType::kInt32), {emit(to(type), {input({1, 4, 6, 5}, low, low + 255)})});
    if (zero == kConstant) x = emit(SubAttrs{}, {x, emit(to(DType::kInt32), {scalar(low + 101)})});
    if (zero == kComputed)
      x = emit(SubAttrs{}, {x, emit(to(DType::kInt32), {emit(to(type), {input({}, low + 30, low + 200)})})});
    x = emit(TransposeAttrs{IntList{0, 2, 3, 1}}, {x});
    IntList padding;
    for (const int64_t p : pads) padding.push(p);
    const Dims dims = depthwise ? Dims{3, 2, 8} : Dims{6, 3, 2, 4 / group};
    const DType bytes = highest > 127 ? DType::kUint8 : DType::kInt8;
    const ValueId w = emit(to(DType::kInt32), {emit(to(bytes), {constant(dims, highest - 200, highest)})});
    ValueId y = depthwise ? emit(DepthwiseConvAttrs{{2, 1}, {1, 2}, padding}, {x, w})
                          : emit(ConvAttrs{{2, 1}, {1, 2}, padding, group}, {x, w});
    y = emit(TransposeAttrs{IntList{0, 3, 1, 2}}, {y});
    output(cast ? emit(to(DType::kFloat32), {y}) : y);
  }
};

TEST(DynamicProducts, OfBytesThatAreGiven) {
  for (const DType type : {DType::kUint8, DType::kInt8})
    for (const auto zero : {PlainProduct::kNone, PlainProduct::kConstant, PlainProduct::kComputed})
      for (const int form : {0, 1, 2})  // plain, in groups, depthwise
        for (const bool cast : {true, false})
          for (const bool pad : {true, false}) {
            PlainProduct p;
            p.type = type, p.zero = zero, p.group = form == 1 ? 2 : 1, p.depthwise = form == 2, p.cast = cast;
            if (!pad) p.pads = {0, 0, 0, 0};
            p.build();
            EXPECT_GT(apply(p), 0);
            EXPECT_EQ(count_ops(p.graph, p.depthwise ? Op::kQDepthwiseConv : Op::kQConv), 1);
          }
}

// A bias of integers is added before the Cast, as old quantizers write it.
TEST(DynamicProducts, WithABiasOfIntegers) {
  for (const bool of_floats : {true, false}) {
    Sketch s;
    Builder builder(s.graph);
    std::vector<ValueId> q;
    EXPECT_TRUE(builder.emit(DynamicQuantizeAttrs{}, {s.input({1, 4, 6, 5}, -1, 2)}, 3, &q).ok());
    ValueId x = s.emit(SubAttrs{}, {s.emit(to(DType::kInt32), {q[0]}), s.emit(to(DType::kInt32), {q[2]})});
    x = s.emit(TransposeAttrs{IntList{0, 2, 3, 1}}, {x});
    const ValueId w =
        s.emit(to(DType::kInt32), {s.emit(to(DType::kInt8), {s.constant({6, 3, 3, 4}, -100, 100)})});
    ValueId y = s.emit(ConvAttrs{{1, 1}, {1, 1}, {1, 1, 1, 1}, 1}, {x, w});
    y = s.emit(TransposeAttrs{IntList{0, 3, 1, 2}}, {y});
    const ValueId numbers = s.input({6}, -30000000, 30000000);
    ValueId bias = s.emit(to(DType::kInt32), {numbers});
    if (!of_floats) bias = s.emit(AddAttrs{}, {bias, bias});
    bias = s.emit(ViewAttrs{IntList{1, 6, 1, 1}}, {bias});
    s.output(s.emit(to(DType::kFloat32), {s.emit(AddAttrs{}, {y, bias})}));
    EXPECT_GT(apply(s), 0);
    EXPECT_EQ(count_ops(s.graph, Op::kQConv), 1);
    // Sums of large numbers may be no float32; they are added as integers.
    int added_integers = 0;
    for (const Node& node : s.graph.nodes)
      added_integers += node.op() == Op::kAdd && s.graph.value(node.outputs[0]).dtype == DType::kInt32;
    EXPECT_EQ(added_integers, of_floats ? 0 : 2);
  }
}

// Kernels of depthwise convolutions subtract no zero points of weights.
TEST(DynamicProducts, NotOfDepthwiseWeightsBeyondInt8) {
  PlainProduct p;
  p.depthwise = true, p.highest = 250;
  p.build();
  EXPECT_EQ(dynamic_products(p.graph), 0);
  EXPECT_EQ(count_ops(p.graph, Op::kDepthwiseConv), 1);
}

TEST(DynamicProducts, NotWhereSomethingElseIsMeant) {
  DynamicProduct wide, deep;
  wide.weights = DType::kInt16, wide.lowest = -200, wide.highest = 200;
  deep.depth = 65537;
  for (DynamicProduct* p : {&wide, &deep}) {
    p->build();
    EXPECT_EQ(dynamic_products(p->graph), 0);
    EXPECT_EQ(count_ops(p->graph, Op::kFullyConnected), 1);
  }
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
