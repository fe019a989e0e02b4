// What goes into a linear operation: scales and shifts, pads, clamps.
#include "converter/passes/passes.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {

namespace testing {
namespace {

// Folded weights are rounded once to float32.
constexpr double kRounded = 1e-6;

TEST(FoldScale, BatchNormalizationGoesIntoAConvolution) {
  Sketch s;
  ValueId y = s.emit(ConvAttrs{{1, 1}, {1, 1}, {1, 1, 1, 1}, 2},
                     {s.input({1, 5, 4, 4}), s.constant({6, 3, 3, 2}), s.constant({6})});
  y = s.emit(MulAttrs{}, {y, s.constant({1, 1, 1, 6}, 0.5, 2)});
  s.output(s.emit(AddAttrs{}, {s.constant({6}), y}));
  EXPECT_EQ(apply(fold_scale, s, kRounded), 4);
  EXPECT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
}

TEST(FoldScale, DepthwiseTransposedAndFullyConnected) {
  Sketch s;
  ValueId y = s.emit(DepthwiseConvAttrs{{1, 1}, {1, 1}, {0, 0, 0, 0}},
                     {s.input({1, 4, 4, 3}), s.constant({2, 2, 6})});
  y = s.emit(MulAttrs{}, {s.constant({6}), y});
  y = s.emit(ConvTransposeAttrs{{2, 2}, {1, 1}, {0, 0, 0, 0}, {0, 0}, 1}, {y, s.constant({3, 2, 2, 6})});
  y = s.emit(DivAttrs{}, {y, s.constant({3}, 1, 2)});
  y = s.emit(FullyConnectedAttrs{}, {y, s.constant({5, 3})});
  y = s.emit(SubAttrs{}, {y, s.constant({5})});
  s.output(s.emit(MulAttrs{}, {y, s.scalar(0.125)}));
  apply(fold_scale, s, kRounded);
  EXPECT_EQ(s.graph.nodes.size(), 3u) << dump(s.graph);
}

TEST(FoldScale, PassesOtherDimsBeforeTheChannels) {
  Sketch s;
  ValueId y = s.emit(FullyConnectedAttrs{}, {s.input({6, 3}), s.constant({5, 3})});
  y = s.emit(ViewAttrs{IntList{2, 3, 5}}, {y});
  s.output(s.emit(AddAttrs{}, {y, s.constant({5})}));
  ValueId turned = s.emit(FullyConnectedAttrs{}, {s.input({5, 3}), s.constant({5, 3})});
  turned = s.emit(ViewAttrs{IntList{25}}, {turned});
  s.output(s.emit(MulAttrs{}, {turned, s.constant({25})}), "turned");
  EXPECT_GT(apply(fold_scale, s, kRounded), 0);
  EXPECT_EQ(s.graph.nodes.size(), 5u) << dump(s.graph);
}

TEST(FoldScale, LeavesWhatIsNotPerChannelOrReadElsewhere) {
  Sketch s;
  const ValueId x = s.input({1, 4, 4, 4}), w = s.constant({4, 1, 1, 4});
  const ConvAttrs conv{{1, 1}, {1, 1}, {0, 0, 0, 0}, 1};
  s.output(s.emit(MulAttrs{}, {s.emit(conv, {x, w}), s.constant({4, 1})}), "rows");
  const ValueId shared = s.emit(conv, {x, w});
  s.output(s.emit(AddAttrs{}, {shared, s.constant({4})}), "a");
  s.output(s.emit(ExpAttrs{}, {shared}), "b");
  s.output(s.emit(SubAttrs{}, {s.constant({4}), s.emit(conv, {x, w})}), "reversed");
  ConvAttrs clamped = conv;
  clamped.act_min = 0;
  s.output(s.emit(MulAttrs{}, {s.emit(clamped, {x, w}), s.constant({4})}), "clamped");
  EXPECT_EQ(apply(fold_scale, s), 0);
}

TEST(FoldScale, LeavesTheWeightsOfAnEmbeddingAlone) {
  Sketch s;
  const ValueId rows = s.constant({5, 3});  // of tokens; and the weights of logits
  const ValueId token = s.emit(CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {s.input({1}, 0, 4)});
  const ValueId x = s.emit(AddAttrs{}, {s.emit(GatherAttrs{0}, {rows, token}), s.input({1, 3})});
  const ValueId scaled = s.emit(MulAttrs{}, {s.emit(FullyConnectedAttrs{}, {x, rows}), s.scalar(0.125)});
  s.output(scaled, "scaled");
  EXPECT_EQ(apply(fold_scale, s), 0);
  // A bias is not a copy of the weights.
  s.output(s.emit(AddAttrs{}, {s.emit(FullyConnectedAttrs{}, {x, rows}), s.constant({5})}), "moved");
  EXPECT_GT(apply(fold_scale, s, kRounded), 0);
}

TEST(DropSubnormals, WhereWhatTheyMultiplyIsBounded) {
  Sketch s;
  const auto weights = [&](float third, float first = 1.0f) {
    return s.graph.add_constant(
        Constant::of<float>(DType::kFloat32, {2, 2}, std::vector<float>{first, -1e-40f, third, 1.5e-38f}));
  };
  const ValueId x = s.input({3, 2});
  s.output(s.emit(FullyConnectedAttrs{}, {x, weights(1e-39f, 1e-23f)}), "unbounded");
  ValueId y = s.emit(FullyConnectedAttrs{.act_min = 0, .act_max = 6}, {x, weights(1e-39f, 1e-23f)});
  y = s.emit(TransposeAttrs{{1, 0}}, {y});
  y = s.emit(TransposeAttrs{{1, 0}}, {y});
  const ValueId bias =
      s.graph.add_constant(Constant::of<float>(DType::kFloat32, {2}, std::vector<float>{1e-42f, 2}));
  s.output(s.emit(FullyConnectedAttrs{}, {y, weights(1e-39f), bias}), "clamped");
  s.output(s.emit(FullyConnectedAttrs{.act_max = 6}, {s.emit(SigmoidAttrs{}, {x}), weights(0)}), "sigmoid");
  s.output(s.emit(FullyConnectedAttrs{}, {s.emit(ClampAttrs{-1e38, 1e38}, {x}), weights(0)}), "far");
  EXPECT_EQ(apply(drop_subnormals, s, 1e-30), 3);
  const auto numbers = [&](size_t node, size_t input) {
    return s.graph.value(s.graph.nodes[node].inputs[input]).constant->as_doubles();
  };
  const double kept = static_cast<double>(-1e-40f), normal = static_cast<double>(1.5e-38f);
  EXPECT_EQ(numbers(0, 1)[1], kept);
  EXPECT_EQ(numbers(1, 1)[1], kept);
  EXPECT_EQ(numbers(4, 1), (std::vector<double>{1, 0, 0, normal}));
  EXPECT_EQ(numbers(4, 2), (std::vector<double>{0, 2}));
  EXPECT_EQ(s.graph.ledger->all().at(0).rule, TypeRule::kWeightTiny);
}

TEST(DropSubnormals, BesideWeightsOfOrdinarySize) {
  Sketch s;
  const auto weights = [&](Dims dims, float first) {
    std::vector<float> numbers(static_cast<size_t>(element_count(dims)), 1e-40f);
    numbers[0] = first;
    return s.graph.add_constant(Constant::of<float>(DType::kFloat32, std::move(dims), numbers));
  };
  const ValueId x = s.input({3, 2});
  s.output(s.emit(FullyConnectedAttrs{}, {x, weights({2, 2}, 0.5f)}), "product");
  s.output(s.emit(MatMulAttrs{}, {x, weights({2, 4}, 0.5f)}), "matrix");
  s.output(s.emit(MatMulAttrs{}, {weights({5, 3}, 0.5f), x}), "left");
  s.output(s.emit(AddAttrs{}, {x, weights({3, 2}, 0.5f)}), "sum");
  s.output(s.emit(FullyConnectedAttrs{}, {x, weights({2, 2}, 1e-24f)}), "small");
  EXPECT_EQ(apply(drop_subnormals, s, 1e-30), 3);
  const auto second = [&](size_t node, size_t input) {
    return s.graph.value(s.graph.nodes[node].inputs[input]).constant->as_doubles()[1];
  };
  const double kept = static_cast<double>(1e-40f);
  EXPECT_EQ(second(0, 1), 0);
  EXPECT_EQ(second(1, 1), 0);
  EXPECT_EQ(second(2, 0), 0);
  EXPECT_EQ(second(3, 1), kept);
  EXPECT_EQ(second(4, 1), kept);
}

TEST(FoldScale, AMaskDoesNotSwallowTheBias) {
  Sketch s;
  const ValueId y = s.emit(FullyConnectedAttrs{}, {s.input({2, 3}), s.constant({4, 3}), s.constant({4})});
  s.output(s.emit(AddAttrs{}, {y, s.scalar(-1e9)}));
  EXPECT_EQ(apply(fold_scale, s), 0);
}

TEST(FusePad, GoesIntoConvolutionsAndAverages) {
  Sketch s;
  const ValueId x = s.input({1, 5, 5, 2});
  const ValueId pad = s.emit(PadAttrs{{0, 1, 0, 0, 0, 2, 1, 0}}, {x});
  s.output(s.emit(ConvAttrs{{2, 2}, {1, 1}, {0, 1, 0, 0}, 1}, {pad, s.constant({3, 3, 3, 2})}), "conv");
  s.output(s.emit(DepthwiseConvAttrs{{1, 1}, {2, 1}, {0, 0, 0, 0}}, {pad, s.constant({3, 3, 2})}), "depth");
  s.output(s.emit(AvgPoolAttrs{{3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 0, 0}, {pad}), "average");
  EXPECT_EQ(apply(fuse_pad, s), 3);
  EXPECT_EQ(count_ops(s.graph, Op::kPad), 0);
}

TEST(FusePad, LeavesOtherFillsAndAxes) {
  Sketch s;
  const ConvAttrs conv{{1, 1}, {1, 1}, {0, 0, 0, 0}, 1};
  const ValueId x = s.input({1, 4, 4, 2});
  const PadAttrs spatial{{0, 1, 1, 0, 0, 1, 1, 0}};
  PadAttrs reflect = spatial;
  reflect.mode = 1;
  const ValueId w = s.constant({3, 2, 2, 2});
  s.output(s.emit(conv, {s.emit(spatial, {x, s.scalar(1)}), w}), "ones");
  s.output(s.emit(conv, {s.emit(reflect, {x}), w}), "reflected");
  s.output(s.emit(conv, {s.emit(PadAttrs{{0, 0, 0, 0, 0, 0, 0, 1}}, {x}), s.constant({3, 2, 2, 3})}),
           "channels");
  s.output(s.emit(AvgPoolAttrs{{2, 2}, {1, 1}, {1, 1}, {0, 1, 0, 0}, 0, 0}, {s.emit(spatial, {x})}),
           "average");
  EXPECT_EQ(apply(fuse_pad, s), 0);
}

TEST(FuseClamp, EveryOperationThatClampsItself) {
  Sketch s;
  ValueId x =
      s.emit(ConvAttrs{{1, 1}, {1, 1}, {0, 0, 0, 0}, 1}, {s.input({1, 4, 4, 2}), s.constant({3, 1, 1, 2})});
  x = s.emit(ClampAttrs{0, 6}, {x});
  x = s.emit(ClampAttrs{-0.5, kInfinity}, {s.emit(AddAttrs{}, {x, s.input({1, 4, 4, 3})})});
  x = s.emit(ClampAttrs{-kInfinity, 1}, {s.emit(SubAttrs{}, {x, s.input({1, 4, 4, 3})})});
  x = s.emit(ClampAttrs{-1, 0.5}, {s.emit(ClampAttrs{-0.5, 2}, {s.emit(MulAttrs{}, {x, s.input({3})})})});
  x = s.emit(ClampAttrs{0, 1}, {s.emit(FullyConnectedAttrs{}, {x, s.constant({2, 3})})});
  s.output(x);
  EXPECT_EQ(apply(fuse_clamp, s), 6);
  EXPECT_EQ(count_ops(s.graph, Op::kClamp), 0);
}

TEST(FuseClamp, LeavesSharedResultsAndBoundsThatDoNotMeet) {
  Sketch s;
  const ValueId sum = s.emit(AddAttrs{}, {s.input({4}), s.input({4})});
  s.output(s.emit(ClampAttrs{0, 1}, {sum}), "a");
  s.output(sum, "b");
  s.output(s.emit(ClampAttrs{3, 4}, {s.emit(ClampAttrs{0, 1}, {s.input({4})})}), "c");
  EXPECT_EQ(apply(fuse_clamp, s), 0);
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
