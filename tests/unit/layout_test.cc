// The layout pass: what the importer wraps in Transposes runs channels-last from one end to the other.
#include "converter/passes/passes.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {

namespace testing {
namespace {

const IntList kToLast{0, 2, 3, 1}, kToFirst{0, 3, 1, 2};

// As the importer writes it: x and the result are channels-first.
ValueId square_conv(Sketch& s, ValueId x, int64_t outputs, int64_t kernel = 3) {
  const int64_t channels = s.graph.value(x).dims[1], pad = kernel / 2;
  const ValueId last = s.emit(TransposeAttrs{kToLast}, {x});
  const ValueId y = s.emit(ConvAttrs{{1, 1}, {1, 1}, {pad, pad, pad, pad}, 1},
                           {last, s.constant({outputs, kernel, kernel, channels})});
  return s.emit(TransposeAttrs{kToFirst}, {y});
}
ValueId relu(Sketch& s, ValueId x) { return s.emit(ClampAttrs{0, kInfinity}, {x}); }
ValueId view(Sketch& s, ValueId x, IntList dims) { return s.emit(ViewAttrs{dims}, {x}); }

TEST(Layout, ResidualBlockKeepsOnlyTheInputsTranspose) {
  Sketch s;
  const ValueId x = relu(s, square_conv(s, s.input({1, 3, 6, 5}), 4));
  const ValueId scaled = s.emit(MulAttrs{}, {square_conv(s, x, 4), s.constant({4, 1, 1})});
  const ValueId sum = relu(s, s.emit(AddAttrs{}, {scaled, x}));
  s.output(s.emit(ReduceAttrs{1, {2, 3}, 0}, {sum}));
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 1) << dump(s.graph);
}

TEST(Layout, ResultsThatArePublicKeepTheirOrder) {
  Sketch s;
  const ValueId a = relu(s, square_conv(s, s.input({1, 1, 6, 5}), 4));
  s.output(a, "a");
  s.output(square_conv(s, a, 2), "b");
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 2) << dump(s.graph);
}

TEST(Layout, PassesThroughOperationsWithAxes) {
  Sketch s;
  ValueId x = square_conv(s, s.input({1, 1, 6, 4}), 6);
  x = s.emit(SliceAttrs{{0, 1, 0, 1}, {1, 1, 1, 1}, {1, 4, 6, 3}}, {x});
  x = s.emit(PadAttrs{{0, 0, 1, 0, 0, 0, 0, 2}}, {x});
  x = s.emit(ConcatAttrs{1}, {x, relu(s, x)});
  x = s.emit(SoftmaxAttrs{1}, {x});
  x = s.emit(MulAttrs{}, {x, s.emit(ReduceAttrs{2, {2, 3}, 1}, {x})});
  x = s.emit(CumulateAttrs{0, 2}, {x});
  x = s.emit(TileAttrs{{1, 2, 1, 1}}, {x});
  x = s.emit(PReluAttrs{}, {x, s.constant({16, 1, 1})});
  x = square_conv(s, x, 1);
  s.output(x);
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 0) << dump(s.graph);
}

// Its scale and zero point have no order; they may be public.
TEST(Layout, PassesThroughDynamicQuantize) {
  Sketch s;
  Builder builder(s.graph);
  std::vector<ValueId> q;
  EXPECT_TRUE(builder.emit(DynamicQuantizeAttrs{}, {square_conv(s, s.input({1, 1, 6, 4}), 6)}, 3, &q).ok());
  const ValueId x =
      s.emit(SubAttrs{}, {s.emit(to(DType::kFloat32), {q[0]}), s.emit(to(DType::kFloat32), {q[2]})});
  s.output(square_conv(s, x, 1));
  s.output(q[2], "zero");
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 0) << dump(s.graph);
}

TEST(Layout, ChannelShuffleAndDepthToSpaceStayChannelsLast) {
  Sketch s;
  ValueId x = square_conv(s, s.input({1, 1, 4, 4}), 8);
  x = view(s, s.emit(TransposeAttrs{{0, 2, 1, 3, 4}}, {view(s, x, {1, 2, 4, 4, 4})}), {1, 8, 4, 4});
  x = square_conv(s, x, 8);
  x = view(s, s.emit(TransposeAttrs{{0, 3, 4, 1, 5, 2}}, {view(s, x, {1, 2, 2, 2, 4, 4})}), {1, 2, 8, 8});
  s.output(square_conv(s, x, 1));
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 2) << dump(s.graph);
}

TEST(Layout, SpatialAxesMayBeJoined) {
  Sketch s;
  const ValueId x = view(s, square_conv(s, s.input({1, 1, 4, 4}), 8), {1, 8, 16});
  s.output(s.emit(TransposeAttrs{{0, 2, 1}}, {x}));
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 0) << dump(s.graph);
}

TEST(Layout, OneAxisWorks) {
  Sketch s;
  const auto conv1d = [&](ValueId x, int64_t outputs) {
    const ValueId last = s.emit(TransposeAttrs{{0, 2, 1}}, {x});
    const ValueId y =
        s.emit(ConvAttrs{{1}, {1}, {1, 1}, 1}, {last, s.constant({outputs, 3, s.graph.value(x).dims[1]})});
    return s.emit(TransposeAttrs{{0, 2, 1}}, {y});
  };
  ValueId x = relu(s, conv1d(s.input({1, 2, 7}), 3));
  x = s.emit(AddAttrs{}, {conv1d(x, 3), x});
  s.output(s.emit(ReduceAttrs{1, {2}, 0}, {x}));
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 1) << dump(s.graph);
}

// A graph that is channels-last by itself, with an operation that the importer wraps.
TEST(Layout, WorksInTheOtherDirection) {
  Sketch s;
  const ValueId x = s.emit(TransposeAttrs{kToLast}, {s.input({1, 3, 4, 5})});
  const ValueId y = s.emit(ResizeAttrs{0, 0, 0, -0.75, 0, 0, 0, {1, 8, 10, 3}, {1, 2, 2, 1}}, {x});
  s.output(s.emit(TransposeAttrs{kToFirst}, {y}));
  apply(assign_layout, s);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 0) << dump(s.graph);
}

TEST(Layout, AnInputThatGoesStraightOutIsCopied) {
  Sketch s;
  const ValueId x = s.input({1, 3, 4, 5});
  s.output(s.emit(TransposeAttrs{kToFirst}, {s.emit(TransposeAttrs{kToLast}, {x})}));
  apply(assign_layout, s);
  ASSERT_EQ(s.graph.nodes.size(), 1u);
  EXPECT_EQ(s.graph.nodes[0].op(), Op::kCopy);
}

TEST(Layout, ValuesWithAnOpenLengthStay) {
  Sketch s;
  const ValueId count = s.graph.add_value("count", DType::kInt64, {});
  s.graph.inputs.push_back(count);
  s.feeds.push_back(Constant::scalar_int(DType::kInt64, 2));
  const ValueId x = s.emit(TransposeAttrs{kToFirst}, {s.input({1, 4, 5, 3})});
  s.graph.value(x).bounded_dims = {{2, count}};
  const ValueId y = relu(s, x);
  s.graph.value(y).bounded_dims = {{2, count}};
  s.output(y);
  apply(assign_layout, s);
  ASSERT_EQ(s.graph.nodes.size(), 2u);
  EXPECT_EQ(s.graph.nodes[0].op(), Op::kTranspose);
}

// Keys as torch exports them: [N, T, heads * size] moved, divided into heads, and moved again.
TEST(Transposes, JoinAcrossAViewThatDividesAxes) {
  Sketch s;
  const ValueId x = s.input({2, 5, 12}), heads = s.input({3, 5, 4});
  const ValueId moved = s.emit(ViewAttrs{{2, 3, 4, 5}}, {s.emit(TransposeAttrs{{0, 2, 1}}, {x})});
  s.output(s.emit(TransposeAttrs{{0, 1, 3, 2}}, {moved}), "moved");
  const ValueId back = s.emit(ViewAttrs{{1, 3, 4, 5}}, {s.emit(TransposeAttrs{{0, 2, 1}}, {heads})});
  s.output(s.emit(TransposeAttrs{{0, 1, 3, 2}}, {back}), "moved back");
  const ValueId joined = s.emit(ViewAttrs{{2, 60}}, {s.emit(TransposeAttrs{{0, 2, 1}}, {x})});
  s.output(s.emit(TransposeAttrs{{1, 0}}, {joined}), "joined");
  EXPECT_GT(apply(simplify_transposes, s), 0);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 3) << dump(s.graph);  // of "moved" one, of "joined" two
}

TEST(Transposes, JoinAndVanish) {
  Sketch s;
  ValueId x = s.emit(TransposeAttrs{{1, 2, 0}}, {s.input({2, 3, 4})});
  x = s.emit(TransposeAttrs{{1, 0, 2}}, {x});
  ValueId y = s.emit(TransposeAttrs{{1, 0, 2, 3}}, {s.input({1, 3, 4, 5})});
  y = view(s, y, {3, 20});
  s.output(x, "a");
  s.output(y, "b");
  EXPECT_GT(apply(simplify_transposes, s), 0);
  EXPECT_EQ(s.graph.nodes.size(), 2u) << dump(s.graph);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 1);
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
