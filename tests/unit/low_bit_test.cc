// Which constant weights are taken for (q - z) * s, what they are kept as, and what is left alone.
#include "converter/ir/low_bit_weights.h"
#include "converter/ir/recipe.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {

namespace testing {
namespace {

// Weights of the model are float32 products, which the packed form computes in float64 here.
constexpr double kRoundedOnce = 2e-7;
constexpr double kHalf = 1e-3;

BitwiseAttrs bitwise(BitwiseFn fn) { return {static_cast<int64_t>(fn)}; }

int64_t noise(size_t i) { return static_cast<int64_t>((i * 2654435761u + 12345) >> 7 & 0xffff); }

// Numbers of any type from a rule on their index.
template <class Rule>
ConstantPtr numbers(DType dtype, Dims dims, Rule rule) {
  std::vector<double> items(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<double>(rule(i));
  std::vector<ConstantPtr> cast;
  EXPECT_TRUE(
      evaluate(to(dtype), {Constant::of<double>(DType::kFloat64, std::move(dims), items)}, 1, &cast).ok());
  return cast[0];
}
ConstantPtr integers(DType dtype, Dims dims, int64_t low, int64_t count) {
  return numbers(dtype, std::move(dims), [=](size_t i) { return low + noise(i) % count; });
}
// Distinct scales; exact in float16.
ConstantPtr scales(DType dtype, Dims dims, double step = 0x1p-10) {
  return numbers(dtype, std::move(dims),
                 [=](size_t i) { return 0.25 + static_cast<double>(i % 509) * step; });
}

const Node* product(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (node.op() == Op::kLowBitFullyConnected) return &node;
  return nullptr;
}
const Value& operand(const Graph& graph, size_t i) { return graph.value(product(graph)->inputs[i]); }

// x [3, depth] times a constant [depth, columns] or, turned, [columns, depth].
struct Model : Sketch {
  ValueId add(const ConstantPtr& c) { return graph.add_constant(c); }
  void multiply(ValueId w, bool turned = true) {
    const Dims dims = graph.value(w).dims;
    const ValueId x = input({3, dims[turned ? 1 : 0]});
    output(emit(FullyConnectedAttrs{}, {x, turned ? w : emit(TransposeAttrs{IntList{1, 0}}, {w})}));
  }
};

// 4-bit weights [64, 48] in words along the depth, zero points in words along the columns, as GPTQ has them.
struct Gptq : Model {
  enum class Shift { kArithmetic, kDivision, kTruncating };
  static constexpr int64_t kDepth = 64, kColumns = 48, kGroups = 2;
  int64_t columns = kColumns;
  double step = 0x1p-10;

  ValueId shifted(ValueId words, const Dims& whole, const Dims& layout, Shift shift) {
    ValueId w = emit(BroadcastAttrs{IntList(std::span<const int64_t>(whole))}, {words});
    const ValueId amounts = add(numbers(DType::kInt32, layout, [](size_t i) { return 4 * i; }));
    const ValueId powers = add(numbers(DType::kInt32, layout, [](size_t i) { return 1 << (4 * i); }));
    if (shift == Shift::kArithmetic) {
      w = emit(bitwise(BitwiseFn::kShiftRight), {w, amounts});
    } else if (shift == Shift::kTruncating) {
      w = emit(DivAttrs{}, {w, powers});
    } else {
      const ValueId nought = add(Constant::scalar_int(DType::kInt32, 0));
      const ValueId sign =
          emit(to(DType::kInt32), {emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {w, nought})});
      w = emit(SubAttrs{}, {emit(DivAttrs{}, {emit(AddAttrs{}, {w, sign}), powers}), sign});
    }
    return emit(bitwise(BitwiseFn::kAnd), {w, add(Constant::scalar_int(DType::kInt32, 15))});
  }

  // `computed`: the type of the scales.
  ValueId weights(Shift shift, const std::vector<int64_t>& group, DType computed = DType::kFloat32) {
    const ValueId words = add(numbers(DType::kInt32, {kDepth / 8, 1, columns}, [](size_t i) {
      return static_cast<int32_t>(static_cast<uint32_t>(noise(i) << 16 | noise(i + 7777)));
    }));
    const ValueId zero_words = add(numbers(DType::kInt32, {kGroups, columns / 8, 1}, [](size_t i) {
      return static_cast<int32_t>(static_cast<uint32_t>(noise(i + 99) << 16 | noise(i)));
    }));
    const ValueId q = emit(ViewAttrs{IntList{kDepth, columns}},
                           {shifted(words, {kDepth / 8, 8, columns}, {1, 8, 1}, shift)});
    const ValueId z =
        emit(ViewAttrs{IntList{kGroups, columns}},
             {emit(AddAttrs{}, {shifted(zero_words, {kGroups, columns / 8, 8}, {1, 1, 8}, shift),
                                add(Constant::scalar_int(DType::kInt32, 1))})});
    const ValueId index = add(Constant::int64s(group));
    const ValueId difference = emit(SubAttrs{}, {q, emit(GatherAttrs{0}, {z, index})});
    const ValueId s = emit(GatherAttrs{0}, {add(scales(computed, {kGroups, columns}, step)), index});
    return emit(MulAttrs{}, {s, emit(to(computed), {difference})});
  }
};

std::vector<int64_t> in_order() {
  std::vector<int64_t> group(Gptq::kDepth);
  for (size_t i = 0; i < group.size(); ++i) group[i] = static_cast<int64_t>(i) / 32;
  return group;
}

TEST(LowBit, UnpacksWordsHoweverTheyAreShifted) {
  for (const auto shift : {Gptq::Shift::kArithmetic, Gptq::Shift::kDivision, Gptq::Shift::kTruncating}) {
    Gptq s;
    s.multiply(s.weights(shift, in_order()), false);
    EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
    ASSERT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
    EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, 32);
    // Truncated quotients of negative words are other numbers, masked to 4 bits as well.
    EXPECT_EQ(operand(s.graph, 1).dtype, DType::kUint4);
    EXPECT_EQ(operand(s.graph, 1).dims, (Dims{Gptq::kColumns, Gptq::kDepth}));
    EXPECT_EQ(s.graph.ledger->by_rule(), (std::map<std::string, size_t>{{"unpack.lowbit", 1}}));
  }
}

TEST(LowBit, ArithmeticShiftsAgreeAndTruncationDoesNot) {
  std::vector<Bytes> packed;
  for (const auto shift : {Gptq::Shift::kArithmetic, Gptq::Shift::kDivision, Gptq::Shift::kTruncating}) {
    Gptq s;
    s.multiply(s.weights(shift, in_order()), false);
    EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
    ASSERT_NE(product(s.graph), nullptr);
    const LoadedBytes bytes = operand(s.graph, 1).constant->load();
    packed.emplace_back(bytes.bytes.begin(), bytes.bytes.end());
  }
  EXPECT_EQ(packed[0], packed[1]);
  EXPECT_NE(packed[0], packed[2]);
}

// Wide enough for its tensors to be computed when they are read, in pieces.
TEST(LowBit, UnpacksLargeWordsInAnyOrderOfGroups) {
  std::vector<int64_t> mixed(Gptq::kDepth);
  for (size_t i = 0; i < mixed.size(); ++i) mixed[i] = static_cast<int64_t>(i * 5 % 64) / 32;
  for (const std::vector<int64_t>& group : {in_order(), mixed})
    for (const DType computed : {DType::kFloat32, DType::kFloat16}) {
      Gptq s;
      s.columns = 2048;
      const ValueId w = s.weights(Gptq::Shift::kArithmetic, group, computed);
      EXPECT_TRUE(s.graph.value(w).constant->is_lazy());
      EXPECT_TRUE(s.graph.nodes.empty());
      const ValueId wide = computed == DType::kFloat32 ? w : s.emit(to(DType::kFloat32), {w});
      s.multiply(wide, false);
      EXPECT_EQ(apply(recognise_any_low_bit, s, computed == DType::kFloat32 ? kRoundedOnce : kHalf), 1);
      ASSERT_NE(product(s.graph), nullptr) << dump(s.graph);
      EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, 32);
      EXPECT_EQ(operand(s.graph, 1).dtype, DType::kUint4);
    }
}

TEST(LowBit, SortsColumnsByGroup) {
  Gptq s;
  std::vector<int64_t> group(Gptq::kDepth);
  for (size_t i = 0; i < group.size(); ++i) group[i] = static_cast<int64_t>(i * 5 % 64) / 32;
  s.multiply(s.weights(Gptq::Shift::kArithmetic, group), false);
  EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
  ASSERT_EQ(s.graph.nodes.size(), 2u) << dump(s.graph);
  EXPECT_EQ(s.graph.nodes[0].op(), Op::kGather);
  EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, 32);
}

TEST(LowBit, UnevenGroupsShareBlocks) {
  Gptq s;
  std::vector<int64_t> group(Gptq::kDepth);
  for (size_t i = 0; i < group.size(); ++i) group[i] = i * 5 % 64 < 48 ? 0 : 1;
  s.multiply(s.weights(Gptq::Shift::kArithmetic, group), false);
  EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
  ASSERT_NE(product(s.graph), nullptr);
  EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, 48);
}

TEST(LowBit, DoesNotRoundToHalfBetween) {
  Gptq s;
  const ValueId half = s.weights(Gptq::Shift::kArithmetic, in_order(), DType::kFloat16);
  s.multiply(s.emit(to(DType::kFloat32), {half}), false);
  // Neither before nor after: the difference is float32's.
  EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
  ASSERT_NE(product(s.graph), nullptr);
  ASSERT_EQ(s.graph.ledger->size(), 1u);
}

TEST(LowBit, KeepsARoundingThatTheModelWrote) {
  // A Cast to float16 is what the model computes in where the scales are float16, else a rounding that is
  // meant.
  for (const double step : {0x1p-10, 0.001}) {
    Gptq s;
    s.step = step;
    const ValueId w = s.weights(Gptq::Shift::kArithmetic, in_order());
    Builder builder(s.graph);
    builder.set_origin({"half", "Cast"});
    std::vector<ValueId> half;
    ASSERT_TRUE(builder.emit(to(DType::kFloat16), {w}, 1, &half).ok());
    s.multiply(s.emit(to(DType::kFloat32), {half[0]}), false);
    EXPECT_EQ(apply(recognise_any_low_bit, s, step == 0x1p-10 ? kHalf : 0), step == 0x1p-10 ? 1 : 0);
  }
}

TEST(LowBit, Dequantized) {
  struct Case {
    DType type;
    int64_t low, count;
    DequantizeAttrs attrs;
    Dims scale;
    DType zero, want;
    int64_t block;
    bool zeros;
  };
  constexpr auto kFloat = static_cast<int64_t>(DType::kFloat32);
  const Case cases[] = {
      {DType::kInt4, -8, 16, {0, 32, kFloat}, {3, 40}, DType::kNone, DType::kInt4, 32, false},
      {DType::kInt4, -8, 16, {0, 32, kFloat}, {3, 40}, DType::kInt4, DType::kInt4, 32, true},
      {DType::kUint4, 0, 16, {0, 32, kFloat}, {3, 40}, DType::kUint4, DType::kUint4, 32, true},
      {DType::kInt8, -128, 256, {1, 0, kFloat}, {40}, DType::kNone, DType::kInt8, 96, false},
      {DType::kUint8, 0, 256, {1, 0, kFloat}, {40}, DType::kUint8, DType::kUint8, 96, true},
      {DType::kInt8, -128, 256, {0, 48, kFloat}, {2, 40}, DType::kNone, DType::kInt8, 48, false},
      {DType::kInt8, -128, 256, {0, 0, kFloat}, {1}, DType::kNone, DType::kInt8, 96, false},
      {DType::kUint8, 120, 16, {0, 0, kFloat}, {1}, DType::kUint8, DType::kUint4, 96, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << &c - cases);
    Model s;
    std::vector<ValueId> operands{s.add(integers(c.type, {96, 40}, c.low, c.count)),
                                  s.add(scales(DType::kFloat32, c.scale))};
    if (c.zero != DType::kNone)
      operands.push_back(s.add(integers(c.zero, c.scale, c.zero == DType::kUint8 ? 120 : 1, 7)));
    s.multiply(s.emit(c.attrs, operands), false);
    EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
    ASSERT_NE(product(s.graph), nullptr) << dump(s.graph);
    EXPECT_EQ(dtype_name(operand(s.graph, 1).dtype), std::string(dtype_name(c.want)));
    EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, c.block);
    EXPECT_EQ(product(s.graph)->inputs.size(), c.zeros ? 4u : 3u);
  }
}

// Floats of 8 and 4 bits keep their type, and scales the narrowest that holds them.
TEST(LowBit, DequantizedFloats) {
  struct Case {
    DType type;
    DequantizeAttrs attrs;
    Dims scale;
    int64_t block;
  };
  constexpr auto kFloat = static_cast<int64_t>(DType::kFloat32);
  const Case cases[] = {{DType::kFloat4E2M1, {0, 32, kFloat}, {3, 40}, 32},
                        {DType::kFloat8E4M3FN, {0, 32, kFloat}, {3, 40}, 32},
                        {DType::kFloat8E5M2FNUZ, {0, 48, kFloat}, {2, 40}, 48},
                        {DType::kFloat8E5M2, {1, 0, kFloat}, {40}, 96},
                        {DType::kFloat4E2M1, {0, 0, kFloat}, {1}, 96}};
  for (const Case& c : cases)
    for (const bool powers : {false, true}) {
      SCOPED_TRACE(::testing::Message() << &c - cases << " " << powers);
      Model s;
      const ConstantPtr scale =
          powers ? numbers(DType::kFloat8E8M0, c.scale, [](size_t i) { return i % 3 == 0 ? 0x1p-7 : 0x1p-5; })
                 : scales(DType::kFloat32, c.scale);
      s.multiply(s.emit(c.attrs, {s.add(integers(c.type, {96, 40}, -6, 13)), s.add(scale)}), false);
      EXPECT_EQ(apply(recognise_any_low_bit, s), 1);
      ASSERT_NE(product(s.graph), nullptr) << dump(s.graph);
      EXPECT_EQ(operand(s.graph, 1).dtype, c.type);
      EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, c.block);
      EXPECT_EQ(product(s.graph)->inputs.size(), 3u);
    }
}

// Without a scale FullyConnected reads them; a zero point has no place in the product; rows of half a byte.
TEST(LowBit, LeavesFloatsAlone) {
  constexpr auto kFloat = static_cast<int64_t>(DType::kFloat32);
  const auto q = [](DType t, int64_t depth) { return integers(t, {40, depth}, -6, 13); };
  Model plain, shifted, odd, of_columns;
  plain.multiply(plain.emit(to(DType::kFloat32), {plain.add(q(DType::kFloat8E4M3FN, 96))}));
  shifted.multiply(shifted.emit(
      MulAttrs{}, {shifted.emit(SubAttrs{}, {shifted.emit(to(DType::kFloat32),
                                                          {shifted.add(q(DType::kFloat8E4M3FN, 96))}),
                                             shifted.add(scales(DType::kFloat32, {40, 1}))}),
                   shifted.add(scales(DType::kFloat32, {40, 1}))}));
  odd.multiply(odd.emit(DequantizeAttrs{0, 0, kFloat},
                        {odd.add(q(DType::kFloat4E2M1, 95)), odd.add(scales(DType::kFloat32, {40}))}));
  of_columns.multiply(of_columns.emit(
      DequantizeAttrs{1, 0, kFloat},
      {of_columns.add(q(DType::kFloat8E4M3FN, 96)), of_columns.add(scales(DType::kFloat32, {96}))}));
  for (Model* m : {&plain, &shifted, &odd, &of_columns})
    EXPECT_EQ(recognise_any_low_bit(m->graph), 0) << dump(m->graph);
}

// A table of 16 numbers, looked up whole or in two halves that are joined then, times a scale for each 32 of
// a row.
ValueId of_table(Model& s, const ConstantPtr& table, const ConstantPtr& places, bool halves) {
  const ValueId t = s.add(table);
  const auto numbers_of = [&](const ConstantPtr& c) {
    return s.emit(GatherAttrs{0}, {t, s.emit(to(DType::kInt64), {s.add(c)})});
  };
  ValueId w = kAbsent;
  if (halves) {
    const ConstantPtr other = integers(DType::kUint8, places->dims(), 0, 16);
    w = s.emit(ConcatAttrs{2}, {s.emit(ViewAttrs{IntList{64, 96, 1}}, {numbers_of(places)}),
                                s.emit(ViewAttrs{IntList{64, 96, 1}}, {numbers_of(other)})});
  } else {
    w = numbers_of(places);
  }
  const int64_t depth = halves ? 192 : 96;
  w = s.emit(MulAttrs{}, {s.emit(ViewAttrs{IntList{64 * depth / 32, 32}}, {w}),
                          s.add(scales(DType::kFloat32, {64 * depth / 32, 1}))});
  return s.emit(ViewAttrs{IntList{64, depth}}, {w});
}

TEST(LowBit, PlacesInATable) {
  const auto irrational = [](size_t i) { return std::cbrt(static_cast<double>(i) - 7.0); };
  for (const int64_t size : {16, 11})
    for (const bool halves : {false, true})
      for (const DType t : {DType::kFloat32, DType::kFloat16}) {
        if (halves && size < 16) continue;
        SCOPED_TRACE(::testing::Message() << size << " " << halves << " " << dtype_name(t));
        Model s;
        const ConstantPtr places = integers(DType::kUint8, {64, 96}, 0, size);
        ConstantPtr table = numbers(t, {size}, irrational);
        if (t == DType::kFloat16) table = s.graph.value(s.emit(to(DType::kFloat32), {s.add(table)})).constant;
        s.multiply(of_table(s, table, places, halves));
        EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
        ASSERT_NE(product(s.graph), nullptr) << dump(s.graph);
        EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, 32);
        EXPECT_EQ(operand(s.graph, 1).dtype, DType::kUint4);
        ASSERT_EQ(product(s.graph)->inputs.size(), 6u);
        EXPECT_EQ(operand(s.graph, 5).dims, (Dims{16}));
        EXPECT_EQ(operand(s.graph, 5).dtype, DType::kFloat32);
      }
}

TEST(LowBit, TablesThatAreNot) {
  const auto table = [](DType t, Dims dims) {
    return numbers(t, std::move(dims), [](size_t i) { return std::cbrt(static_cast<double>(i) - 7.0); });
  };
  const ConstantPtr places = integers(DType::kUint8, {64, 96}, 0, 16);
  Model large, infinite, shifted, of_columns;
  large.multiply(of_table(large, table(DType::kFloat32, {17}), places, false));
  infinite.multiply(of_table(infinite,
                             numbers(DType::kFloat32, {16}, [](size_t i) { return i == 3 ? HUGE_VAL : 1.5; }),
                             places, false));
  shifted.multiply(shifted.emit(SubAttrs{}, {of_table(shifted, table(DType::kFloat32, {16}), places, false),
                                             shifted.add(scales(DType::kFloat32, {64, 1}))}));
  of_columns.multiply(
      of_columns.emit(MulAttrs{}, {of_table(of_columns, table(DType::kFloat32, {16}), places, false),
                                   of_columns.add(scales(DType::kFloat32, {1, 96}))}));
  for (Model* m : {&large, &infinite, &shifted, &of_columns})
    EXPECT_EQ(recognise_any_low_bit(m->graph), 0) << dump(m->graph);
}

TEST(LowBit, FractionalAndWideZeroPoints) {
  for (const double more : {0.5, 1.0, 300.0}) {
    Model s;
    const ValueId q =
        s.emit(ViewAttrs{IntList{64, 4, 32}},
               {s.emit(to(DType::kFloat32), {s.add(integers(DType::kUint4, {64, 128}, 0, 16))})});
    const ValueId z = s.add(
        numbers(DType::kFloat32, {64, 4, 1}, [&](size_t i) { return static_cast<double>(i % 16) + more; }));
    const ValueId w =
        s.emit(MulAttrs{}, {s.emit(SubAttrs{}, {q, z}), s.add(scales(DType::kFloat32, {64, 4, 1}))});
    s.multiply(s.emit(ViewAttrs{IntList{64, 128}}, {w}));
    EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
    ASSERT_NE(product(s.graph), nullptr);
    EXPECT_EQ(operand(s.graph, 1).dtype, DType::kUint4);
    ASSERT_EQ(operand(s.graph, 3).dtype, DType::kFloat32);
    // 256 zero points: in 16 bits, or whole ones in 4.
    ASSERT_NE(operand(s.graph, 3).constant->recipe(), nullptr);
    EXPECT_EQ(operand(s.graph, 3).constant->recipe()->stored_bytes, more == 0.5 ? 512u : 128u + 4);
  }
}

TEST(LowBit, OneMatrixBothWays) {
  Model s;
  const ValueId w = s.emit(DequantizeAttrs{0, 0, static_cast<int64_t>(DType::kFloat32)},
                           {s.add(integers(DType::kInt8, {64, 64}, -100, 201)),
                            s.add(numbers(DType::kFloat32, {1}, [](size_t) { return 0.125; }))});
  const ValueId x = s.input({2, 64});
  for (const int64_t turned : {1, 0, 1})
    s.output(s.emit(MatMulAttrs{.transpose_b = turned}, {x, w}),
             "out" + std::to_string(s.graph.nodes.size()));
  EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 3);
  EXPECT_EQ(s.graph.nodes[0].inputs[1], s.graph.nodes[2].inputs[1]);
  EXPECT_NE(s.graph.nodes[0].inputs[1], s.graph.nodes[1].inputs[1]);
}

TEST(LowBit, AddedZeroPoints) {
  Model s;
  const ValueId q = s.emit(to(DType::kFloat32), {s.add(integers(DType::kUint8, {64, 128}, 0, 256))});
  const ValueId z = s.add(numbers(DType::kFloat32, {64, 1}, [](size_t i) { return -128.0 - i % 7; }));
  s.multiply(s.emit(MulAttrs{}, {s.add(scales(DType::kFloat32, {64, 1})), s.emit(AddAttrs{}, {z, q})}));
  EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
  ASSERT_NE(product(s.graph), nullptr);
  EXPECT_EQ(operand(s.graph, 1).dtype, DType::kUint8);
  EXPECT_EQ(operand(s.graph, 3).dtype, DType::kUint8);
}

TEST(LowBit, MatMulAndBias) {
  for (const bool turned : {false, true}) {
    Model s;
    const ValueId q = s.add(integers(DType::kInt8, turned ? Dims{40, 96} : Dims{96, 40}, -100, 201));
    const ValueId w = s.emit(DequantizeAttrs{turned ? 0 : 1, 0, static_cast<int64_t>(DType::kFloat32)},
                             {q, s.add(scales(DType::kFloat32, {40}))});
    const ValueId x = s.input({2, 5, 96});
    const ValueId y = s.emit(MatMulAttrs{.transpose_b = turned ? 1 : 0}, {x, w});
    const ValueId scaled = s.emit(MulAttrs{}, {y, s.constant({40})});
    s.output(s.emit(AddAttrs{}, {scaled, s.constant({40})}));
    EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
    EXPECT_EQ(apply(fold_scale, s, kRoundedOnce), 4);
    ASSERT_EQ(s.graph.nodes.size(), 1u) << dump(s.graph);
    EXPECT_EQ(product(s.graph)->inputs.size(), 5u);
    EXPECT_EQ(operand(s.graph, 1).dtype, DType::kInt8);
  }
}

// [N, K] of 8 bits times one scale for each column of the weights, or whatever is given.
int changes_of(Model& s, const ConstantPtr& q, const ConstantPtr& scale) {
  const ValueId w = s.emit(MulAttrs{}, {s.emit(to(DType::kFloat32), {s.add(q)}), s.add(scale)});
  s.multiply(w);
  return apply(recognise_any_low_bit, s, kRoundedOnce);
}

TEST(LowBit, OddRowsAreFilledUp) {
  for (const int64_t block : {0, 16})
    for (const DType t : {DType::kInt4, DType::kUint4, DType::kInt8}) {
      SCOPED_TRACE(::testing::Message() << dtype_name(t) << " " << block);
      Model s;
      const ValueId q = s.add(integers(t, {64, 63},
                                       t == DType::kUint4  ? 0
                                       : t == DType::kInt8 ? -100
                                                           : -8,
                                       t == DType::kInt8 ? 200 : 16));
      const DequantizeAttrs attrs{block > 0 ? 1 : 0, block, static_cast<int64_t>(DType::kFloat32)};
      s.multiply(s.emit(attrs, {q, s.add(scales(DType::kFloat32, block > 0 ? Dims{64, 4} : Dims{64}))}));
      EXPECT_EQ(apply(recognise_any_low_bit, s, kRoundedOnce), 1);
      ASSERT_NE(product(s.graph), nullptr) << dump(s.graph);
      const int64_t filled = t == DType::kInt8 ? 63 : 64;
      EXPECT_EQ(operand(s.graph, 1).dims, (Dims{64, filled}));
      EXPECT_EQ(operand(s.graph, 0).dims, (Dims{3, filled}));
      EXPECT_EQ(product(s.graph)->as<LowBitFullyConnectedAttrs>()->block_size, block > 0 ? block : filled);
      EXPECT_EQ(s.graph.nodes.size(), filled == 64 ? 2u : 1u);
    }
}

TEST(LowBit, IntegersTakeTheFewestBits) {
  const struct {
    DType stored, type;
    int most;
    int64_t bits;
  } cases[] = {{DType::kUint2, DType::kUint2, 4, 0},  {DType::kUint8, DType::kUint2, 4, 0},
               {DType::kUint8, DType::kUint8, 8, 3},  {DType::kUint8, DType::kUint4, 16, 0},
               {DType::kUint8, DType::kUint8, 32, 5}, {DType::kUint8, DType::kUint8, 64, 6},
               {DType::kUint8, DType::kInt8, 128, 0}};
  for (const auto& c : cases) {
    Model s;
    EXPECT_EQ(changes_of(s, integers(c.stored, {64, 64}, 0, c.most), scales(DType::kFloat32, {64, 1})), 1);
    const Node* node = product(s.graph);
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->as<LowBitFullyConnectedAttrs>()->bits, c.bits);
    EXPECT_EQ(s.graph.value(node->inputs[1]).dtype, c.type);
  }
}

TEST(LowBit, LeavesAlone) {
  const ConstantPtr q = integers(DType::kInt8, {32, 64}, -100, 201);
  Model good, per_column, wide, infinite;
  EXPECT_EQ(changes_of(good, q, scales(DType::kFloat32, {32, 1})), 1);
  EXPECT_EQ(changes_of(per_column, q, scales(DType::kFloat32, {1, 64})), 0);
  EXPECT_EQ(changes_of(wide, integers(DType::kInt16, {32, 64}, -300, 601), scales(DType::kFloat32, {32, 1})),
            0);
  const ConstantPtr some =
      numbers(DType::kFloat32, {32, 1}, [](size_t i) { return i == 5 ? HUGE_VAL : 1.5; });
  EXPECT_EQ(low_bit_weights(good.graph
                                .value(good.emit(MulAttrs{}, {good.emit(to(DType::kFloat32), {good.add(q)}),
                                                              good.add(some)}))
                                .constant),
            std::nullopt);
}

TEST(LowBit, SmallWeightsOfAChannelAreFasterWide) {
  for (const int64_t rows : {64, 1024}) {
    Model s;
    const ConstantPtr q = integers(DType::kInt8, {rows, 1024}, -100, 201);
    s.multiply(s.emit(DequantizeAttrs{0, 0, static_cast<int64_t>(DType::kFloat32)},
                      {s.add(q), s.add(scales(DType::kFloat32, {rows}))}));
    EXPECT_EQ(recognise_low_bit(s.graph), rows == 64 ? 0 : 1);
  }
}

TEST(LowBit, WordsOfEightBitsAreWhatTheyAre) {
  // Integers with no scale at all.
  Model s;
  s.multiply(s.emit(to(DType::kFloat32), {s.add(integers(DType::kInt8, {48, 64}, -100, 201))}));
  EXPECT_EQ(apply(recognise_any_low_bit, s), 1);
  ASSERT_NE(product(s.graph), nullptr);
  EXPECT_EQ(operand(s.graph, 1).dtype, DType::kInt8);
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
