// Which products of integers are computed in float32: those of 8 bits that only a Cast to float32 reads.
#include "converter/passes/passes.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {

namespace testing {
namespace {

// Cast(x - zero) times a constant, as MatMulInteger is lowered.
struct Product : Sketch {
  int64_t depth = 40;
  DType stored = DType::kUint8, weights = DType::kInt8, sum = DType::kInt32, result = DType::kFloat32;
  ValueId product = kAbsent;

  void build() {
    const double high = stored == DType::kInt16 ? 30000 : 100;
    const ValueId x = emit(to(sum), {emit(to(stored), {input({3, depth}, 0, high)})});
    const ValueId zero = emit(to(sum), {emit(to(stored), {input({}, 0, 9)})});
    const ValueId less = emit(SubAttrs{}, {x, zero});
    const ValueId w = emit(to(sum), {emit(to(weights), {constant({24, depth}, -100, 100)})});
    product = emit(FullyConnectedAttrs{}, {less, w});
    output(emit(to(result), {product}));
  }
  int integer_products() const {
    int count = 0;
    for (const Node& node : graph.nodes)
      count += node.op() == Op::kFullyConnected && is_integer(graph.value(node.outputs[0]).dtype);
    return count;
  }
};

TEST(FloatProducts, OfBytesThatAreCast) {
  for (const DType stored : {DType::kUint8, DType::kInt8})
    for (const DType sum : {DType::kInt32, DType::kInt64}) {
      Product p;
      p.stored = stored, p.sum = sum;
      p.build();
      EXPECT_GT(apply(float_products, p, 0), 0);
      EXPECT_EQ(p.integer_products(), 0);
      // The weights stay bytes.
      EXPECT_EQ(apply(recognise_any_low_bit, p, 1e-6), 1);
    }
}

TEST(FloatProducts, OfTwoComputedMatrices) {
  for (const int64_t turned : {0, 1}) {
    Sketch s;
    const auto bytes = [&](const Dims& dims) {
      return s.emit(to(DType::kInt32), {s.emit(to(DType::kInt8), {s.input(dims, -100, 100)})});
    };
    const ValueId a = bytes({2, 5, 7}), b = bytes(turned != 0 ? Dims{2, 4, 7} : Dims{2, 7, 4});
    MatMulAttrs attrs{};
    attrs.transpose_b = turned;
    s.output(s.emit(to(DType::kFloat32), {s.emit(attrs, {a, b})}));
    EXPECT_GT(apply(float_products, s, 0), 0);
    for (const Node& node : s.graph.nodes)
      if (node.op() == Op::kMatMul) {
        EXPECT_EQ(s.graph.value(node.outputs[0]).dtype, DType::kFloat32);
      }
  }
}

// As ConvInteger is lowered, whose differences are transposed.
TEST(FloatProducts, OfConvolutions) {
  for (const bool depthwise : {false, true}) {
    Sketch s;
    const ValueId x = s.emit(to(DType::kInt32), {s.emit(to(DType::kUint8), {s.input({1, 3, 6, 5}, 0, 250)})});
    const ValueId zero = s.emit(to(DType::kInt32), {s.emit(to(DType::kUint8), {s.input({}, 0, 250)})});
    const ValueId last = s.emit(TransposeAttrs{IntList{0, 2, 3, 1}}, {s.emit(SubAttrs{}, {x, zero})});
    const auto weights = [&](const Dims& dims) {
      return s.emit(to(DType::kInt32), {s.emit(to(DType::kInt8), {s.constant(dims, -100, 100)})});
    };
    ValueId sum = kAbsent;
    if (depthwise) {
      DepthwiseConvAttrs a{};
      a.strides = a.dilations = IntList{1, 1}, a.pads = IntList{1, 1, 1, 1};
      sum = s.emit(a, {last, weights({3, 3, 6})});
    } else {
      ConvAttrs a{};
      a.strides = a.dilations = IntList{1, 1}, a.pads = IntList{1, 1, 1, 1};
      sum = s.emit(a, {last, weights({4, 3, 3, 3})});
    }
    s.output(s.emit(to(DType::kFloat32), {s.emit(TransposeAttrs{IntList{0, 3, 1, 2}}, {sum})}));
    EXPECT_GT(apply(float_products, s, 0), 0);
    for (const Node& node : s.graph.nodes)
      if (node.op() != Op::kCast) {
        EXPECT_EQ(s.graph.value(node.outputs[0]).dtype, DType::kFloat32) << op_name(node.op());
      }
  }
}

TEST(FloatProducts, NotWhereTheSumIsReadOrWrapsOrIsWide) {
  Product read, wide, words, deep;
  read.build();
  read.output(read.product, "sum");
  wide.result = DType::kFloat64;
  wide.build();
  words.stored = DType::kInt16;
  words.build();
  deep.depth = 66000;  // times 355 * 128
  deep.build();
  for (Product* p : {&read, &wide, &words, &deep}) {
    EXPECT_EQ(float_products(p->graph), 0);
    EXPECT_EQ(p->integer_products(), 1);
  }
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
