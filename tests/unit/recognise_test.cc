// Functions written out in elementary operations, and what simplifies without a change of any bit.
#include "converter/passes/passes.h"
#include "converter/passes/proofs/equal_elements.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {

namespace testing {
namespace {

// The written-out forms hold their constants in float32.
constexpr double kConstants = 3e-7;

TEST(RecogniseActivations, GeluByErf) {
  for (const int form : {0, 1, 2}) {
    Sketch s;
    const ValueId x = s.input({3, 5});
    const ValueId u = form == 1 ? s.emit(MulAttrs{}, {x, s.scalar(0.70710678118654752)})
                                : s.emit(DivAttrs{}, {x, s.scalar(1.4142135623730951)});
    const ValueId one_more = s.emit(AddAttrs{}, {s.emit(ErfAttrs{}, {u}), s.scalar(1)});
    if (form == 2)
      s.output(s.emit(MulAttrs{}, {s.emit(MulAttrs{}, {x, s.scalar(0.5)}), one_more}));
    else
      s.output(s.emit(MulAttrs{}, {s.scalar(0.5), s.emit(MulAttrs{}, {one_more, x})}));
    EXPECT_EQ(apply(recognise_activations, s, kConstants), 1) << form;
    ASSERT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
    EXPECT_EQ(s.graph.nodes[0].op(), Op::kGelu);
  }
}

TEST(RecogniseActivations, GeluByTanh) {
  for (const bool power : {false, true}) {
    Sketch s;
    const ValueId x = s.input({7});
    const ValueId cube =
        power ? s.emit(PowAttrs{}, {x, s.scalar(3)}) : s.emit(MulAttrs{}, {s.emit(MulAttrs{}, {x, x}), x});
    const ValueId sum = s.emit(AddAttrs{}, {x, s.emit(MulAttrs{}, {cube, s.scalar(0.044715)})});
    const ValueId t = s.emit(TanhAttrs{}, {s.emit(MulAttrs{}, {s.scalar(0.7978845608028654), sum})});
    const ValueId half = s.emit(MulAttrs{}, {s.scalar(0.5), x});
    s.output(s.emit(MulAttrs{}, {half, s.emit(AddAttrs{}, {s.scalar(1), t})}));
    EXPECT_EQ(apply(recognise_activations, s, kConstants), 1);
    ASSERT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
    EXPECT_EQ(s.graph.nodes[0].as<GeluAttrs>()->tanh_approximation, 1);
  }
}

// Constants as models in float16 and bfloat16 have them.
TEST(RecogniseActivations, GeluWithRoundedConstants) {
  for (const float root : {1.4140625f, 0.70703125f, 1.4150f}) {
    Sketch s;
    const ValueId x = s.input({3, 5});
    const ValueId u =
        root > 1 ? s.emit(DivAttrs{}, {x, s.scalar(root)}) : s.emit(MulAttrs{}, {x, s.scalar(root)});
    const ValueId one_more = s.emit(AddAttrs{}, {s.emit(ErfAttrs{}, {u}), s.scalar(1)});
    s.output(s.emit(MulAttrs{}, {s.scalar(0.5), s.emit(MulAttrs{}, {one_more, x})}));
    EXPECT_EQ(apply(recognise_activations, s, 1e-3), root == 1.4150f ? 0 : 1) << root;
  }
  for (const bool half : {false, true}) {
    Sketch s;
    const ValueId x = s.input({7});
    const ValueId cube = s.emit(MulAttrs{}, {s.emit(MulAttrs{}, {x, x}), x});
    const ValueId sum = s.emit(
        AddAttrs{}, {x, s.emit(MulAttrs{}, {cube, s.scalar(half ? 0.044708251953125 : 0.044677734375)})});
    const ValueId t =
        s.emit(TanhAttrs{}, {s.emit(MulAttrs{}, {s.scalar(half ? 0.7978515625 : 0.796875), sum})});
    s.output(
        s.emit(MulAttrs{}, {s.emit(MulAttrs{}, {s.scalar(0.5), x}), s.emit(AddAttrs{}, {s.scalar(1), t})}));
    EXPECT_EQ(apply(recognise_activations, s, 1e-2), 1);
  }
}

TEST(RecogniseActivations, Silu) {
  Sketch s;
  const ValueId x = s.input({4}), y = s.input({4});
  s.output(s.emit(MulAttrs{}, {s.emit(SigmoidAttrs{}, {x}), x}), "plain");
  const ValueId u = s.emit(MulAttrs{}, {y, s.scalar(1.702)});
  s.output(s.emit(MulAttrs{}, {y, s.emit(SigmoidAttrs{}, {u})}), "quick");
  s.output(s.emit(MulAttrs{}, {y, s.emit(SigmoidAttrs{}, {x})}), "gate");
  EXPECT_EQ(apply(recognise_activations, s, kConstants), 2);
  EXPECT_EQ(count_ops(s.graph, Op::kSilu), 2);
}

TEST(RecogniseActivations, HardSwish) {
  Sketch s;
  const ValueId x = s.input({9}, -5, 5), y = s.input({9}, -5, 5);
  const auto ramp = [&](ValueId v) {
    return s.emit(ClampAttrs{0, 6}, {s.emit(AddAttrs{}, {v, s.scalar(3)})});
  };
  s.output(s.emit(DivAttrs{}, {s.emit(MulAttrs{}, {x, ramp(x)}), s.scalar(6)}), "a");
  s.output(s.emit(MulAttrs{}, {y, s.emit(MulAttrs{}, {ramp(y), s.scalar(1.0 / 6)})}), "b");
  s.output(s.emit(MulAttrs{}, {x, s.emit(HardSigmoidAttrs{1.0 / 6, 0.5}, {x})}), "c");
  s.output(s.emit(DivAttrs{}, {ramp(x), s.scalar(6)}), "d");
  apply(recognise_activations, s, kConstants);
  EXPECT_EQ(count_ops(s.graph, Op::kHardSwish), 3) << dump(s.graph);
  EXPECT_EQ(count_ops(s.graph, Op::kHardSigmoid), 1);
  EXPECT_EQ(s.graph.nodes.size(), 4u);
}

TEST(RecogniseActivations, OtherConstantsStay) {
  Sketch s;
  const ValueId x = s.input({5});
  const ValueId erf = s.emit(ErfAttrs{}, {s.emit(DivAttrs{}, {x, s.scalar(1.5)})});
  s.output(
      s.emit(MulAttrs{}, {s.scalar(0.5), s.emit(MulAttrs{}, {s.emit(AddAttrs{}, {erf, s.scalar(1)}), x})}));
  EXPECT_EQ(apply(recognise_activations, s), 0);
}

ValueId mean(Sketch& s, ValueId x, IntList axes) { return s.emit(ReduceAttrs{1, axes, 1}, {x}); }

TEST(RecogniseNorms, LayerNorm) {
  for (const int form : {0, 1, 2, 3}) {
    Sketch s;
    const ValueId x = s.input({2, 3, 8});
    const IntList axes = form == 3 ? IntList{1, 2} : IntList{2};
    const Dims tail = form == 3 ? Dims{3, 8} : Dims{1, 1, 8};
    const ValueId d = s.emit(SubAttrs{}, {x, mean(s, x, axes)});
    const ValueId square = form == 1 ? s.emit(MulAttrs{}, {d, d}) : s.emit(PowAttrs{}, {d, s.scalar(2)});
    const ValueId radicand = s.emit(AddAttrs{}, {mean(s, square, axes), s.scalar(1e-5)});
    ValueId y;
    if (form == 1)
      y = s.emit(MulAttrs{}, {d, s.emit(RsqrtAttrs{}, {radicand})});
    else if (form == 2)
      y = s.emit(MulAttrs{}, {s.emit(DivAttrs{}, {s.scalar(1), s.emit(SqrtAttrs{}, {radicand})}), d});
    else
      y = s.emit(DivAttrs{}, {d, s.emit(SqrtAttrs{}, {radicand})});
    y = s.emit(MulAttrs{}, {y, s.constant(tail)});
    s.output(s.emit(AddAttrs{}, {s.constant(form == 3 ? tail : Dims{8}), y}));
    EXPECT_EQ(apply(recognise_norms, s), 3) << form;
    ASSERT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
    EXPECT_EQ(s.graph.nodes[0].op(), Op::kLayerNorm);
  }
}

TEST(NarrowIntegers, WhereTheRangeIsProven) {
  const auto to = [](DType t) { return CastAttrs{static_cast<int64_t>(t), 1}; };
  for (const int64_t factor : {int64_t{3}, int64_t{3'000'000'000}}) {
    Sketch s;
    const ValueId small = s.emit(to(DType::kInt8), {s.input({4}, 0, 3)}), table = s.constant({40, 2});
    const ValueId by = s.graph.add_constant(Constant::scalar_int(DType::kInt64, factor)),
                  one = s.graph.add_constant(Constant::scalar_int(DType::kInt64, 1));
    const ValueId product = s.emit(MulAttrs{}, {s.emit(to(DType::kInt64), {small}), by});
    const ValueId index = s.emit(AddAttrs{}, {product, one});
    if (factor == 3) s.output(s.emit(GatherAttrs{0}, {table, index}), "rows");
    s.output(s.emit(to(DType::kFloat32), {index}), "numbers");
    EXPECT_EQ(apply(narrow_integers, s), factor == 3 ? 2 : 0);
    EXPECT_EQ(
        std::any_of(s.graph.nodes.begin(), s.graph.nodes.end(),
                    [&](const Node& node) { return s.graph.value(node.outputs[0]).dtype == DType::kInt64; }),
        factor != 3)
        << dump(s.graph);
  }
}

TEST(NarrowIntegers, ThroughWhateverMovesElements) {
  const auto to = [](DType t) { return CastAttrs{static_cast<int64_t>(t), 1}; };
  Sketch s;
  const ValueId wide = s.emit(to(DType::kInt64), {s.emit(to(DType::kInt8), {s.input({4}, 0, 3)})});
  const ValueId places = s.graph.add_constant(Constant::int64s(std::vector<int64_t>{3, 2, 1, 0}));
  const ValueId index = s.emit(GatherElementsAttrs{0}, {s.emit(TileAttrs{{2}}, {wide}), places});
  s.output(s.emit(GatherAttrs{0}, {s.constant({40, 2}), index}), "rows");
  EXPECT_GT(apply(narrow_integers, s), 0);
  for (const Node& node : s.graph.nodes)
    EXPECT_NE(s.graph.value(node.outputs[0]).dtype, DType::kInt64) << dump(s.graph);
}

TEST(DropRoundings, BehindNormsAndSoftmaxOnly) {
  const auto through = [](Sketch& s, ValueId v, DType narrow) {
    const ValueId down = s.emit(CastAttrs{static_cast<int64_t>(narrow), 1}, {v});
    return s.emit(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {down});
  };
  Sketch s;
  const ValueId x = s.input({3, 8});
  const ValueId mean =
      s.emit(ReduceAttrs{static_cast<int64_t>(ReduceFn::kMean), {1}, 1}, {s.emit(MulAttrs{}, {x, x})});
  const ValueId root = s.emit(SqrtAttrs{}, {s.emit(AddAttrs{}, {mean, s.scalar(1e-6)})});
  const ValueId quotient = s.emit(DivAttrs{}, {x, root});
  s.output(s.emit(MulAttrs{}, {through(s, quotient, DType::kFloat16), s.constant({8})}), "norm");
  const ValueId soft = s.emit(SoftmaxAttrs{.axis = 1}, {x});
  s.output(s.emit(MatMulAttrs{}, {through(s, soft, DType::kBFloat16), s.constant({8, 4})}), "softmax");
  s.output(s.emit(AddAttrs{}, {through(s, s.emit(MulAttrs{}, {x, x}), DType::kFloat16), x}), "meant");
  EXPECT_EQ(apply(drop_roundings, s, 1e-2), 2);
  EXPECT_EQ(apply(recognise_norms, s, 1e-5), 2);
  EXPECT_EQ(std::count_if(s.graph.nodes.begin(), s.graph.nodes.end(),
                          [](const Node& node) { return node.op() == Op::kCast; }),
            2)
      << dump(s.graph);
}

TEST(RecogniseNorms, RmsNorm) {
  Sketch s;
  const ValueId x = s.input({3, 6});
  const ValueId radicand = s.emit(AddAttrs{}, {mean(s, s.emit(MulAttrs{}, {x, x}), {1}), s.scalar(1e-6)});
  const ValueId y = s.emit(DivAttrs{}, {x, s.emit(SqrtAttrs{}, {radicand})});
  s.output(s.emit(MulAttrs{}, {s.constant({6}), y}));
  EXPECT_EQ(apply(recognise_norms, s), 2);
  ASSERT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
  EXPECT_EQ(s.graph.nodes[0].op(), Op::kRmsNorm);
}

// y[..., first::step] = rows, by indices of every element (whole), or of rows of the first axis.
ValueId written(Sketch& s, ValueId y, int64_t first, int64_t step, ValueId rows, bool whole) {
  const Dims dims = s.graph.value(rows).dims;
  std::vector<int64_t> indices;
  Dims shape{dims[0], 1};
  if (whole) {
    shape = {dims[0], dims[1], 2};
    for (int64_t i = 0; i < dims[0]; ++i)
      for (int64_t j = 0; j < dims[1]; ++j) indices.insert(indices.end(), {i, first + step * j});
  } else {
    for (int64_t i = 0; i < dims[0]; ++i) indices.push_back(first + step * i);
  }
  const ValueId at = s.graph.add_constant(Constant::of<int64_t>(DType::kInt64, shape, indices));
  return s.emit(ScatterNdAttrs{0}, {y, at, rows});
}

TEST(RecogniseWrites, EveryOther) {
  for (const bool whole : {false, true}) {
    Sketch s;
    const Dims all = whole ? Dims{3, 8} : Dims{8, 3}, half = whole ? Dims{3, 4} : Dims{4, 3};
    ValueId y = s.input(all);
    for (const int64_t first : {1, 0, 1}) y = written(s, y, first, 2, s.input(half), whole);
    s.output(y);
    EXPECT_GT(apply(recognise_writes, s), 0);
    EXPECT_EQ(count_ops(s.graph, Op::kScatterNd), 0) << dump(s.graph);
    EXPECT_EQ(count_ops(s.graph, Op::kConcat), 1) << dump(s.graph);
  }
}

TEST(RecogniseWrites, Ranges) {
  Sketch s;
  const ValueId x = s.input({8, 3});
  ValueId y = s.emit(NegAttrs{}, {x});
  s.output(written(s, y, 2, 1, s.input({4, 3}), false), "middle");
  s.output(written(s, y, 0, 1, s.input({8, 3}), false), "all");
  for (const int64_t first : {0, 5, 3}) y = written(s, y, first, 1, s.input({3, 3}), false);
  s.output(y, "overlapping");
  s.output(written(s, s.emit(NegAttrs{}, {y}), 0, 1, s.input({8, 2}), true), "columns");
  apply(recognise_writes, s);
  EXPECT_EQ(count_ops(s.graph, Op::kScatterNd), 0) << dump(s.graph);
}

TEST(RecogniseWrites, OthersStay) {
  Sketch s;
  const ValueId x = s.input({8, 3}), at = s.graph.add_constant(Constant::of<int64_t>(
                                         DType::kInt64, {3, 1}, std::vector<int64_t>{0, 1, 5}));
  s.output(s.emit(ScatterNdAttrs{0}, {s.emit(NegAttrs{}, {x}), at, s.input({3, 3})}), "uneven");
  s.output(written(s, s.emit(NegAttrs{}, {x}), 0, 2, s.input({4, 3}), false), "half of the rows");
  s.output(written(s, x, 2, 1, s.input({1, 3}), false), "a row of an input");
  s.output(written(s, s.emit(NegAttrs{}, {x}), 0, 2, s.input({3, 3}), false), "rows between others");
  EXPECT_EQ(apply(recognise_writes, s), 0) << dump(s.graph);
}

TEST(RecogniseNorms, WithoutEpsilon) {
  for (const bool centre : {false, true}) {
    Sketch s;
    const ValueId x = s.input({3, 6});
    const ValueId d = centre ? s.emit(SubAttrs{}, {x, mean(s, x, {1})}) : x;
    const ValueId root = s.emit(SqrtAttrs{}, {mean(s, s.emit(MulAttrs{}, {d, d}), {1})});
    s.output(s.emit(MulAttrs{}, {s.emit(DivAttrs{}, {s.scalar(1), root}), d}));
    EXPECT_EQ(apply(recognise_norms, s), 1);
    ASSERT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
    EXPECT_EQ(s.graph.nodes[0].op(), centre ? Op::kLayerNorm : Op::kRmsNorm);
  }
}

TEST(RecogniseNorms, OtherAxesStay) {
  Sketch s;
  const ValueId x = s.input({2, 4, 3});
  const ValueId d = s.emit(SubAttrs{}, {x, mean(s, x, {1})});
  const ValueId radicand = s.emit(AddAttrs{}, {mean(s, s.emit(MulAttrs{}, {d, d}), {1}), s.scalar(1e-5)});
  s.output(s.emit(DivAttrs{}, {d, s.emit(SqrtAttrs{}, {radicand})}));
  EXPECT_EQ(apply(recognise_norms, s), 0);
}

// GroupNorm of x [2, 6, 2, 4] as torch exports it, with the norm's own scale and bias; `grouped`: the dims
// that it normalizes.
ValueId group_norm(Sketch& s, ValueId x, const Dims& grouped, float scale = 1, float bias = 0) {
  const auto by_group = [&](float number) {
    return s.graph.add_constant(Constant::of<float>(
        DType::kFloat32, {grouped[1]}, std::vector<float>(static_cast<size_t>(grouped[1]), number)));
  };
  const ValueId view = s.emit(ViewAttrs{IntList(std::span<const int64_t>(grouped))}, {x});
  const ValueId y = s.emit(GroupNormAttrs{grouped[1], 1e-5},
                           {s.emit(TransposeAttrs{{0, 2, 1}}, {view}), by_group(scale), by_group(bias)});
  return s.emit(ViewAttrs{{2, 6, 2, 4}}, {s.emit(TransposeAttrs{{0, 2, 1}}, {y})});
}

TEST(RecogniseNorms, GroupNorm) {
  for (const int form : {0, 1, 2, 3}) {
    Sketch s;
    ValueId y = group_norm(s, s.input({2, 6, 2, 4}), {2, 3, 16}, form == 3 ? 2 : 1);
    if (form > 0) y = s.emit(MulAttrs{}, {y, s.constant(form == 1 ? Dims{6, 1, 1} : Dims{1, 6, 1, 1})});
    if (form > 1) y = s.emit(AddAttrs{}, {s.constant({6, 1, 1}), y});
    s.output(y);
    EXPECT_GT(apply(recognise_norms, s), 0) << form;
    EXPECT_EQ(count_ops(s.graph, Op::kGroupNorm), 1);
    EXPECT_EQ(count_ops(s.graph, Op::kView), 0) << dump(s.graph);
    EXPECT_EQ(count_ops(s.graph, Op::kMul) + count_ops(s.graph, Op::kAdd), form == 3 ? 2 : 0)
        << dump(s.graph);
    for (const Node& node : s.graph.nodes) {
      if (const auto* norm = node.as<GroupNormAttrs>()) {
        EXPECT_EQ(norm->groups, 3);
      }
    }
  }
}

TEST(RecogniseNorms, OtherGroupsStay) {
  Sketch
      s;  // groups of the batch, rows of a picture instead of channels, and a norm that something else reads
  s.output(group_norm(s, s.input({2, 6, 2, 4}), {1, 3, 32}), "batch");
  s.output(group_norm(s, s.input({2, 6, 2, 4}), {4, 3, 8}), "halves");
  s.output(group_norm(s, s.input({2, 6, 2, 4}), {2, 12, 4}), "rows");
  EXPECT_EQ(apply(recognise_norms, s), 0) << dump(s.graph);
  Sketch read_twice;
  const ValueId y = group_norm(read_twice, read_twice.input({2, 6, 2, 4}), {2, 3, 16});
  read_twice.output(y, "bare");
  read_twice.output(read_twice.emit(MulAttrs{}, {y, read_twice.constant({6, 1, 1})}), "scaled");
  apply(recognise_norms, read_twice);
  EXPECT_EQ(count_ops(read_twice.graph, Op::kMul), 1) << dump(read_twice.graph);
}

// x cos + rotate(x) sin for x [2, 3, 4, 8].
ValueId rotary(Sketch& s, ValueId x, ValueId cos, ValueId sin, bool swapped = false) {
  const auto half = [&](int64_t start) {
    return s.emit(SliceAttrs{{0, 0, 0, start}, {1, 1, 1, 1}, {2, 3, 4, 4}}, {x});
  };
  const ValueId second = s.emit(NegAttrs{}, {half(swapped ? 0 : 4)}), first = half(swapped ? 4 : 0);
  const ValueId rotated = s.emit(ConcatAttrs{3}, {second, first});
  return s.emit(AddAttrs{}, {s.emit(MulAttrs{}, {x, cos}), s.emit(MulAttrs{}, {sin, rotated})});
}

TEST(RecogniseRope, HalvesThatAreAlike) {
  Sketch s;
  const ValueId x = s.input({2, 3, 4, 8}), angle = s.input({4, 4});
  const ValueId both = s.emit(ConcatAttrs{1}, {angle, angle});
  const ValueId cos = s.emit(TrigAttrs{static_cast<int64_t>(TrigFn::kCos)}, {both}),
                sin = s.emit(TrigAttrs{static_cast<int64_t>(TrigFn::kSin)}, {both});
  s.output(rotary(s, x, cos, sin), "computed");
  const ConstantPtr half = s.fill({5, 4}, -1, 1);
  std::vector<float> table;
  for (int row = 0; row < 5; ++row)
    for (int i = 0; i < 8; ++i)
      table.push_back(static_cast<float>(half->as_doubles()[static_cast<size_t>(row * 4 + i % 4)]));
  const ValueId rows = s.graph.add_constant(Constant::of<float>(DType::kFloat32, {5, 8}, table));
  const ValueId at = s.graph.add_constant(Constant::int64s(std::vector<int64_t>{4, 0, 2, 2}));
  const ValueId picked = s.emit(GatherAttrs{0}, {rows, at});
  s.output(rotary(s, x, s.emit(ViewAttrs{.dims = {1, 4, 8}}, {picked}), picked), "table");
  EXPECT_EQ(apply(recognise_rope, s, 1e-6), 2);
  EXPECT_EQ(std::count_if(s.graph.nodes.begin(), s.graph.nodes.end(),
                          [](const Node& node) { return node.op() == Op::kRope; }),
            2)
      << dump(s.graph);
}

// Decoders for 131,072 tokens have a row for each: the table is not listed, element by element.
TEST(RecogniseRope, LongTables) {
  Sketch s;
  constexpr int64_t kRows = (int64_t{1} << 19) + 1;
  std::vector<float> table;
  for (int64_t i = 0; i < kRows * 8; ++i) table.push_back(static_cast<float>(i / 8 % 7 + i % 4) / 16);
  const ValueId rows = s.graph.add_constant(Constant::of<float>(DType::kFloat32, {kRows, 8}, table));
  const ValueId at = s.graph.add_constant(Constant::int64s(std::vector<int64_t>{4, 0, kRows - 1, 2}));
  const ValueId picked = s.emit(GatherAttrs{0}, {rows, at});
  s.output(rotary(s, s.input({2, 3, 4, 8}), picked, s.emit(ViewAttrs{.dims = {1, 4, 8}}, {picked})));
  EXPECT_EQ(apply(recognise_rope, s, 1e-6), 1);
  EXPECT_EQ(count_ops(s.graph, Op::kRope), 1) << dump(s.graph);
}

// The proof of equal elements knows each integer of 64 bits, and that indices may take a row apart.
TEST(EqualElements, HalvesThatDiffer) {
  Sketch s;
  const int64_t large = int64_t{1} << 53;
  const ConstantPtr whole = Constant::int64s(std::vector<int64_t>{large, large + 1});
  const ValueId integers = s.graph.add_constant(whole);
  const ValueId table =
      s.graph.add_constant(Constant::of<float>(DType::kFloat32, {2, 2}, std::vector<float>{1, 1, 2, 2}));
  const ValueId at = s.emit(CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {s.input({1, 2})});
  const ValueId mixed = s.emit(GatherElementsAttrs{0}, {table, at});
  const ValueId picked = s.emit(GatherAttrs{0}, {table, at});
  s.output(mixed, "mixed");
  s.output(picked, "picked");
  Editor e(s.graph);
  EXPECT_FALSE(equal_elements(e, every_second_of(e, integers, 0), every_second_of(e, integers, 1)));
  EXPECT_FALSE(equal_halves(e, integers));
  EXPECT_FALSE(equal_halves(e, mixed));
  EXPECT_TRUE(equal_halves(e, picked));
}

TEST(RecogniseRope, OthersStay) {
  Sketch s;
  const ValueId x = s.input({2, 3, 4, 8}), angle = s.input({4, 4});
  const ValueId both = s.emit(ConcatAttrs{1}, {angle, angle}), any = s.input({4, 8});
  s.output(rotary(s, x, both, any), "unlike");
  s.output(rotary(s, x, s.constant({4, 8}), both), "unlike table");
  s.output(rotary(s, x, both, both, true), "turned back");
  s.output(s.emit(AddAttrs{.act_min = 0}, {s.emit(MulAttrs{}, {x, both}), s.emit(MulAttrs{}, {x, both})}),
           "other");
  EXPECT_EQ(apply(recognise_rope, s), 0);
}

// Neighbours of x [2, 3, 4, 8] as parts [2, 3, 4, 4].
ValueId neighbour(Sketch& s, ValueId x, int64_t which, bool stride) {
  if (stride) return s.emit(SliceAttrs{{0, 0, 0, which}, {1, 1, 1, 2}, {2, 3, 4, 4}}, {x});
  const ValueId pairs = s.emit(ViewAttrs{.dims = {2, 3, 4, 4, 2}}, {x});
  const ValueId part = s.emit(SliceAttrs{{0, 0, 0, 0, which}, {1, 1, 1, 1, 1}, {2, 3, 4, 4, 1}}, {pairs});
  return s.emit(ViewAttrs{.dims = {2, 3, 4, 4}}, {part});
}
// Along a new last axis.
ValueId stack(Sketch& s, const std::vector<ValueId>& parts) {
  std::vector<ValueId> one;
  for (const ValueId id : parts) {
    Dims dims = s.graph.value(id).dims;
    dims.push_back(1);
    one.push_back(s.emit(ViewAttrs{.dims = IntList(dims)}, {id}));
  }
  return s.emit(ConcatAttrs{static_cast<int64_t>(s.graph.value(one[0]).dims.size()) - 1}, one);
}
ValueId product(Sketch& s, ValueId a, ValueId b) { return s.emit(MulAttrs{}, {a, b}); }
ValueId trig(Sketch& s, ValueId angle, TrigFn fn) {
  return s.emit(TrigAttrs{static_cast<int64_t>(fn)}, {angle});
}

void expect_ropes(const Graph& graph, int count, bool interleaved) {
  EXPECT_EQ(count_ops(graph, Op::kRope), count) << dump(graph);
  for (const Node& node : graph.nodes)
    if (const auto* a = node.as<RopeAttrs>()) {
      EXPECT_EQ(a->interleaved, interleaved ? 1 : 0);
    }
}

TEST(RecogniseRope, NeighboursStackedBesideThemselves) {
  for (const bool stride : {false, true}) {
    Sketch s;
    const ValueId x = s.input({2, 3, 4, 8}), angle = s.input({4, 4});
    const ValueId thin = s.emit(ViewAttrs{.dims = {4, 4, 1}}, {angle});
    const ValueId twice =
        stride ? s.emit(TileAttrs{{1, 1, 2}}, {thin}) : s.emit(BroadcastAttrs{{4, 4, 2}}, {thin});
    const ValueId flat = s.emit(ViewAttrs{.dims = {4, 8}}, {twice});
    const ValueId turned =
        stack(s, {s.emit(NegAttrs{}, {neighbour(s, x, 1, stride)}), neighbour(s, x, 0, stride)});
    const ValueId rotated = s.emit(ViewAttrs{.dims = {2, 3, 4, 8}}, {turned});
    s.output(s.emit(AddAttrs{}, {product(s, x, trig(s, flat, TrigFn::kCos)),
                                 product(s, rotated, trig(s, flat, TrigFn::kSin))}));
    EXPECT_EQ(apply(recognise_rope, s, 1e-6), 1);
    expect_ropes(s.graph, 1, true);
  }
}

TEST(RecogniseRope, ProductsOfPairsAndOfHalves) {
  for (const int form : {0, 1, 2}) {
    Sketch s;
    const ValueId x = s.input({2, 3, 4, 8}), cos = s.input({4, 4}), sin = s.input({1, 4});
    const auto half = [&](int64_t which) {
      return form == 2 ? s.emit(SliceAttrs{{0, 0, 0, 4 * which}, {1, 1, 1, 1}, {2, 3, 4, 4}}, {x})
                       : neighbour(s, x, which, form == 1);
    };
    const ValueId a = half(0), b = half(1);
    const ValueId first = s.emit(SubAttrs{}, {product(s, a, cos), product(s, sin, b)});
    const ValueId second = s.emit(AddAttrs{}, {product(s, b, cos), product(s, a, sin)});
    s.output(form == 2 ? s.emit(ConcatAttrs{3}, {first, second}) : stack(s, {first, second}));
    EXPECT_EQ(apply(recognise_rope, s), 1);
    expect_ropes(s.graph, 1, form != 2);
  }
}

// F[..., 0] a + F[..., 1] b with F made of (c, -s, s, c) in some order and of several bands.
ValueId by_matrix(Sketch& s, ValueId x, std::vector<int> order) {
  std::vector<ValueId> bands;
  for (const int64_t width : {1, 3}) {
    const ValueId angle = s.input({4, width});
    const ValueId cos = trig(s, angle, TrigFn::kCos), sin = trig(s, angle, TrigFn::kSin);
    const ValueId entries[] = {cos, s.emit(NegAttrs{}, {sin}), sin};
    std::vector<ValueId> picked;
    for (const int i : order) picked.push_back(entries[i]);
    bands.push_back(s.emit(ViewAttrs{.dims = {4, width, 2, 2}}, {stack(s, picked)}));
  }
  const ValueId f = s.emit(ConcatAttrs{1}, bands);
  const ValueId pairs = s.emit(ViewAttrs{.dims = {2, 3, 4, 4, 1, 2}}, {x});
  ValueId terms[2];
  for (int64_t i = 0; i < 2; ++i) {
    const ValueId column = s.emit(ViewAttrs{.dims = {1, 1, 4, 4, 2}},
                                  {s.emit(SliceAttrs{{0, 0, 0, i}, {1, 1, 1, 1}, {4, 4, 2, 1}}, {f})});
    const ValueId part =
        s.emit(SliceAttrs{{0, 0, 0, 0, 0, i}, {1, 1, 1, 1, 1, 1}, {2, 3, 4, 4, 1, 1}}, {pairs});
    terms[i] = product(s, column, s.emit(ViewAttrs{.dims = {2, 3, 4, 4, 1}}, {part}));
  }
  return s.emit(AddAttrs{}, {terms[0], terms[1]});
}

TEST(RecogniseRope, MatricesPerPair) {
  Sketch s;
  const ValueId x = s.input({2, 3, 4, 8});
  s.output(by_matrix(s, x, {0, 1, 2, 0}), "turned");
  EXPECT_EQ(apply(recognise_rope, s), 1);
  expect_ropes(s.graph, 1, true);
}

TEST(RecogniseRope, OtherPairsStay) {
  Sketch s;
  const ValueId x = s.input({2, 3, 4, 8}), c = s.input({4, 8}), d = s.input({4, 4});
  s.output(by_matrix(s, x, {0, 2, 2, 0}), "not turned");
  s.output(by_matrix(s, x, {0, 1, 2, 1}), "not a rotation");
  s.output(by_matrix(s, x, {0, 0, 2, 0}), "nor this");
  const ValueId a = neighbour(s, x, 0, true), b = neighbour(s, x, 1, true);
  const auto beside = [&](ValueId first, ValueId second) {
    const ValueId rotated =
        s.emit(ViewAttrs{.dims = {2, 3, 4, 8}}, {stack(s, {s.emit(NegAttrs{}, {first}), second})});
    return s.emit(AddAttrs{}, {product(s, x, c), product(s, rotated, c)});
  };
  s.output(beside(b, a), "unlike pairs");
  s.output(beside(a, b), "turned back");
  const auto written = [&](ValueId p, ValueId q, ValueId r) {
    return stack(s, {s.emit(SubAttrs{}, {product(s, p, d), product(s, q, d)}),
                     s.emit(AddAttrs{}, {product(s, r, d), product(s, q, d)})});
  };
  s.output(written(b, a, b), "exchanged");
  s.output(written(a, b, b), "twice the same");
  EXPECT_EQ(apply(recognise_rope, s), 0) << dump(s.graph);
}

TEST(RecogniseAttention, TwoProductsAndASoftmax) {
  for (const int form : {0, 1, 2, 3}) {
    Sketch s;
    const ValueId q = s.input({2, 3, 4, 5}), k = s.input({2, 3, 5, 6}), v = s.input({2, 3, 6, 7});
    ValueId y = s.emit(MatMulAttrs{}, {q, k});
    if (form % 2 == 1) y = s.emit(MulAttrs{}, {s.scalar(0.25), y});
    if (form == 2) y = s.emit(DivAttrs{}, {y, s.scalar(2)});
    const ValueId mask = s.emit(MulAttrs{}, {s.input({2, 1, 1, 6}, 0, 1), s.scalar(-10000)});
    if (form >= 2) y = s.emit(AddAttrs{}, {y, mask});
    s.output(s.emit(MatMulAttrs{}, {s.emit(SoftmaxAttrs{3, 0}, {y}), v}));
    EXPECT_EQ(apply(recognise_attention, s, 1e-9), 1) << form;
    EXPECT_EQ(count_ops(s.graph, Op::kAttention), 1);
    EXPECT_EQ(count_ops(s.graph, Op::kSoftmax), 0);
  }
}

int64_t rule_of(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (const auto* a = node.as<AttentionAttrs>()) return a->rule;
  return -1;
}

TEST(RecogniseAttention, MasksThatAreKnownWhenItRuns) {
  const double inf = kInfinity;
  const auto code = [](AttentionRule rule) { return static_cast<int64_t>(rule); };
  for (const int form : {0, 1, 2, 3, 4, 5}) {
    Sketch s;
    const ValueId q = s.input({2, 3, 4, 5}), k = s.input({2, 3, 5, 6}), v = s.input({2, 3, 6, 7});
    ValueId y = s.emit(MulAttrs{}, {s.emit(MatMulAttrs{}, {q, k}), s.scalar(0.5)});
    // Among rows of every kind, one of which nothing is left.
    std::vector<float> keep(4 * 6, 1);
    for (int i = 0; i < 6; ++i)
      keep[static_cast<size_t>(6 + i)] = 0, keep[static_cast<size_t>(12 + i)] = i % 2;
    s.feeds.push_back(Constant::of<float>(DType::kFloat32, {2, 1, 2, 6}, keep));
    const ValueId given = s.graph.add_value("mask", DType::kFloat32, {2, 1, 2, 6});
    s.graph.inputs.push_back(given);
    const ValueId rows = s.emit(ConcatAttrs{2}, {given, given});
    const ValueId mask =
        s.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kGreater)}, {rows, s.scalar(0.5)});
    const ValueId bias = s.emit(WhereAttrs{}, {mask, s.scalar(0), s.scalar(-inf)});
    if (form == 0 || form >= 4) y = s.emit(AddAttrs{}, {y, bias});
    if (form == 1)
      y = s.emit(AddAttrs{},
                 {s.emit(MulAttrs{}, {s.emit(SubAttrs{}, {s.scalar(1), rows}), s.scalar(-1e9)}), y});
    if (form == 2) y = s.emit(WhereAttrs{}, {mask, y, s.scalar(-1e9)});
    if (form == 3) y = s.emit(WhereAttrs{}, {s.emit(BitNotAttrs{}, {mask}), s.scalar(-inf), y});
    ValueId weights = s.emit(SoftmaxAttrs{3, 0}, {y});
    if (form == 4)
      weights = s.emit(WhereAttrs{}, {s.emit(ClassifyAttrs{kClassifyNan}, {weights}), s.scalar(0), weights});
    if (form == 5) {
      ReduceAttrs most;
      most.fn = static_cast<int64_t>(ReduceFn::kMax), most.axes = {3};
      const ValueId blind = s.emit(CompareAttrs{}, {s.emit(most, {bias}), s.scalar(-inf)});
      weights = s.emit(WhereAttrs{}, {blind, s.scalar(0), weights});
    }
    s.output(s.emit(MatMulAttrs{}, {weights, v}));
    EXPECT_EQ(apply(recognise_attention, s, 1e-9), 1) << form;
    EXPECT_EQ(count_ops(s.graph, Op::kSoftmax), 0) << dump(s.graph);
    EXPECT_EQ(rule_of(s.graph), code(form == 2 || form == 3 ? AttentionRule::kReplaces
                                     : form == 4            ? AttentionRule::kAddsNanToZero
                                     : form == 5            ? AttentionRule::kHides
                                                            : AttentionRule::kAdds));
  }
}

// Keys from a length on are padding, and two heads share keys and values.
TEST(RecogniseAttention, PaddingIsALength) {
  for (const int64_t length : {0, 1, 4, 6, 9})
    for (const bool other : {false, true}) {
      Sketch s;
      const ValueId q = s.input({2, 4, 3, 5}), k = s.input({2, 2, 6, 5}), v = s.input({2, 2, 6, 7});
      const auto count = [&](const char* name, int64_t number) {
        s.feeds.push_back(Constant::scalar_int(DType::kInt64, number));
        const ValueId id = s.graph.add_value(name, DType::kInt64, {});
        s.graph.inputs.push_back(id);
        return id;
      };
      const int64_t each[] = {0, 1, 2, 3, 4, 5};
      const ValueId counts = s.graph.add_constant(Constant::int64s(each)), keys = count("keys", length);
      const auto exists = [&](ValueId number, IntList dims) {
        const CompareAttrs less{static_cast<int64_t>(CompareFn::kLess)};
        return s.emit(ViewAttrs{dims, -1}, {s.emit(less, {counts, number})});
      };
      const auto repeated = [&](ValueId x, int64_t size) {
        const ValueId apart = s.emit(ViewAttrs{{2, 2, 1, 6, size}, -1}, {x});
        return s.emit(ViewAttrs{{2, 4, 6, size}, -1}, {s.emit(BroadcastAttrs{{2, 2, 2, 6, size}}, {apart})});
      };
      const ValueId shown = exists(keys, {1, 1, 1, 6});
      ValueId y = s.emit(MulAttrs{}, {s.emit(MatMulAttrs{0, 1}, {q, repeated(k, 5)}), s.scalar(0.5)});
      y = s.emit(SoftmaxAttrs{3, 0}, {s.emit(WhereAttrs{}, {shown, y, s.scalar(-1e30)})});
      y = s.emit(WhereAttrs{}, {shown, y, s.scalar(0)});
      const ValueId rows = exists(other ? count("values", length) : keys, {1, 1, 6, 1});
      s.output(s.emit(MatMulAttrs{}, {y, s.emit(WhereAttrs{}, {rows, repeated(v, 7), s.scalar(0)})}));
      EXPECT_EQ(apply(recognise_attention, s, 1e-9), other ? 0 : 1) << length;
      for (const Node& node : s.graph.nodes) {
        if (node.op() != Op::kAttention) continue;
        ASSERT_EQ(node.inputs.size(), 5u);
        EXPECT_EQ(node.inputs[1], k);
        EXPECT_EQ(node.inputs[2], v);
        EXPECT_EQ(node.inputs[3], kAbsent);
      }
    }
}

// 30 tanh(q k' * 0.25 / 30), with and without a mask behind.
TEST(RecogniseAttention, CappedScores) {
  for (const int form : {0, 1, 2}) {
    Sketch s;
    const ValueId q = s.input({1, 2, 3, 4}), k = s.input({1, 2, 5, 4}), v = s.input({1, 2, 5, 6});
    const ValueId product = s.emit(MulAttrs{}, {s.emit(MatMulAttrs{0, 1}, {q, k}), s.scalar(0.25)});
    ValueId y = s.emit(TanhAttrs{}, {s.emit(DivAttrs{}, {product, s.scalar(30)})});
    y = s.emit(MulAttrs{}, {y, s.scalar(30)});
    if (form == 1) y = s.emit(AddAttrs{}, {y, s.constant({3, 5})});
    if (form == 2) {
      const ValueId mask =
          s.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {s.input({3, 5}), s.scalar(0)});
      y = s.emit(WhereAttrs{}, {mask, s.scalar(-1e30), y});
    }
    s.output(s.emit(MatMulAttrs{}, {s.emit(SoftmaxAttrs{3, 0}, {y}), v}));
    EXPECT_EQ(apply(recognise_attention, s, 1e-6), 1) << form;
    ASSERT_EQ(count_ops(s.graph, Op::kAttention), 1) << dump(s.graph);
    EXPECT_EQ(count_ops(s.graph, Op::kTanh), 0);
  }
}

TEST(RecogniseAttention, SharedScoresAndOtherRepairsStay) {
  Sketch s;
  const ValueId q = s.input({1, 3, 4, 5}), k = s.input({1, 3, 5, 6}), v = s.input({1, 3, 6, 7});
  const ValueId p = s.emit(SoftmaxAttrs{3, 0}, {s.emit(MatMulAttrs{}, {q, k})});
  s.output(s.emit(MatMulAttrs{}, {p, v}), "a");
  s.output(p, "weights");
  const ValueId r = s.emit(SoftmaxAttrs{3, 0}, {s.emit(MatMulAttrs{}, {q, k})});
  const ValueId one = s.emit(WhereAttrs{}, {s.emit(ClassifyAttrs{kClassifyNan}, {r}), s.scalar(1), r});
  s.output(s.emit(MatMulAttrs{}, {one, v}), "b");
  EXPECT_EQ(apply(recognise_attention, s), 0);
}

TEST(Simplify, WhatChangesNothingGoes) {
  Sketch s;
  ValueId x = s.emit(ExpAttrs{}, {s.input({2, 4})});
  x = s.emit(MulAttrs{}, {x, s.scalar(1)});
  x = s.emit(DivAttrs{}, {x, s.constant({4}, 1, 1)});
  x = s.emit(SubAttrs{}, {x, s.scalar(0)});
  x = s.emit(CastAttrs{static_cast<int64_t>(DType::kFloat32), 1}, {s.emit(CopyAttrs{}, {x})});
  x = s.emit(SliceAttrs{{0, 0}, {1, 1}, {2, 4}}, {x});
  s.output(s.emit(NegAttrs{}, {x}));
  apply(simplify, s, 0);
  EXPECT_EQ(s.graph.nodes.size(), 2u) << dump(s.graph);
}

TEST(Simplify, AddingZeroStaysBecauseOfMinusZero) {
  Sketch s;
  s.output(s.emit(ExpAttrs{}, {s.emit(AddAttrs{}, {s.input({3}), s.scalar(0)})}));
  EXPECT_EQ(apply(simplify, s, 0), 0);
}

TEST(Simplify, PublicResultsKeepTheirName) {
  Sketch s;
  s.output(s.emit(MulAttrs{}, {s.input({3}), s.scalar(1)}));
  apply(simplify, s, 0);
  ASSERT_EQ(s.graph.nodes.size(), 1u);
  EXPECT_EQ(s.graph.nodes[0].op(), Op::kCopy);
}

TEST(Simplify, CheaperForms) {
  Sketch s;
  const ValueId x = s.input({4, 6});
  const ValueId square = s.emit(PowAttrs{}, {x, s.scalar(2)});
  s.output(s.emit(PowAttrs{}, {s.emit(AddAttrs{}, {square, s.scalar(1)}), s.scalar(0.5)}), "root");
  s.output(s.emit(DivAttrs{}, {x, s.scalar(8)}), "eighth");
  s.output(s.emit(DivAttrs{}, {x, s.scalar(3)}), "third");
  s.output(s.emit(PowAttrs{}, {s.emit(AbsAttrs{}, {x}), s.scalar(1.5)}), "power");
  const ValueId outer = s.emit(SliceAttrs{{3, 1}, {-1, 2}, {4, 3}}, {x});
  s.output(s.emit(SliceAttrs{{1, 0}, {2, 2}, {2, 2}}, {outer}), "slice");
  s.output(s.emit(MatMulAttrs{}, {x, s.emit(TransposeAttrs{{1, 0}}, {s.input({5, 6})})}), "product");
  apply(simplify, s, 0);
  EXPECT_EQ(count_ops(s.graph, Op::kPow), 1) << dump(s.graph);
  EXPECT_EQ(count_ops(s.graph, Op::kSqrt), 1);
  EXPECT_EQ(count_ops(s.graph, Op::kDiv), 1);
  EXPECT_EQ(count_ops(s.graph, Op::kSlice), 1);
  EXPECT_EQ(count_ops(s.graph, Op::kTranspose), 0);
}

TEST(Simplify, GathersRowsOfBothTablesAndNotOfACopy) {
  for (const bool computed : {false, true}) {
    Sketch s;
    const ValueId first =
        s.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {s.input({}), s.scalar(0)});
    const ValueId rows = s.emit(CastAttrs{static_cast<int64_t>(DType::kInt64), 1}, {s.input({2}, 0, 7)});
    const ValueId other = computed ? s.emit(NegAttrs{}, {s.input({8, 3})}) : s.constant({8, 3});
    const ValueId table = s.emit(WhereAttrs{}, {first, s.constant({8, 3}), other});
    s.output(s.emit(GatherAttrs{0}, {table, rows}));
    apply(simplify, s, 0);
    EXPECT_EQ(count_ops(s.graph, Op::kGather), computed ? 1 : 2) << dump(s.graph);
  }
}

TEST(CommonSubexpressions, EqualThingsAreComputedOnce) {
  Sketch s;
  const ValueId x = s.input({4});
  const ValueId a = s.emit(AddAttrs{}, {s.emit(ExpAttrs{}, {x}), s.scalar(2)});
  const ValueId b = s.emit(AddAttrs{}, {s.emit(ExpAttrs{}, {x}), s.scalar(2)});
  const ValueId c = s.emit(AddAttrs{}, {s.emit(ExpAttrs{}, {x}), s.scalar(3)});
  s.output(s.emit(MulAttrs{}, {s.emit(MulAttrs{}, {a, b}), c}));
  EXPECT_EQ(apply(share_common_subexpressions, s, 0), 4);
  EXPECT_EQ(s.graph.nodes.size(), 5u) << dump(s.graph);
}

TEST(CommonSubexpressions, PublicResultsStayApart) {
  Sketch s;
  const ValueId x = s.input({4});
  s.output(s.emit(ExpAttrs{}, {x}), "a");
  s.output(s.emit(ExpAttrs{}, {x}), "b");
  EXPECT_EQ(apply(share_common_subexpressions, s, 0), 0);
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
