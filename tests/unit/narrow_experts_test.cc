// Products with matrices of experts: which constants stay packed, and which chosen matrices are read in
// place.
#include "converter/ir/low_bit_weights.h"
#include "converter/ir/recipe.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert {

namespace testing {
namespace {

constexpr int64_t kExperts = 4, kColumns = 40, kDepth = 96, kRows = 5;
constexpr auto kFloat = static_cast<int64_t>(DType::kFloat32);

// Small integers that every type has, and powers of two.
ConstantPtr numbers(DType dtype, const Dims& dims, bool powers = false) {
  std::vector<double> items(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t draw = i * 2654435761u >> 9;
    items[i] = powers ? std::ldexp(1.0, static_cast<int>(draw % 5) - 6) : static_cast<double>(draw % 8) - 3;
  }
  std::vector<ConstantPtr> cast;
  EXPECT_TRUE(evaluate(to(dtype), {Constant::of<double>(DType::kFloat64, dims, items)}, 1, &cast).ok());
  return cast[0];
}

const Node* expert_product(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (node.op() == Op::kExpertFullyConnected) return &node;
  return nullptr;
}

struct ExpertModel : Sketch {
  ValueId add(const ConstantPtr& c) { return graph.add_constant(c); }
  // Of each row, the `k` best of kExperts.
  ValueId best(int64_t k) {
    Builder builder(graph);
    std::vector<ValueId> top;
    EXPECT_TRUE(builder.emit(TopKAttrs{k, 1, 1, 1}, {input({kRows, kExperts})}, 2, &top).ok());
    return top[1];
  }
  // ExpertFullyConnected of all rows.
  void multiply(ValueId w) {
    const ValueId x = input({kRows, graph.value(w).dims[2]});
    output(emit(ExpertFullyConnectedAttrs{}, {x, emit(ViewAttrs{IntList{kRows}}, {best(1)}), w}));
  }
  void expect_packed(DType type, DType scales, int64_t block) {
    EXPECT_GT(apply(recognise_any_low_bit, *this, 1e-6), 0);
    const Node* p = expert_product(graph);
    ASSERT_NE(p, nullptr) << dump(graph);
    ASSERT_GT(p->inputs.size(), 3u) << dump(graph);
    EXPECT_EQ(graph.value(p->inputs[2]).dtype, type);
    EXPECT_EQ(graph.value(p->inputs[2]).dims.size(), 3u);
    const ConstantPtr s = graph.value(p->inputs[3]).constant;
    EXPECT_EQ(s->recipe() ? s->recipe()->inputs[0]->dtype() : s->dtype(), scales);
    EXPECT_EQ(p->as<ExpertFullyConnectedAttrs>()->block_size, block);
  }
};

TEST(NarrowExperts, ScalesOfEveryKindStayBesideTheWeights) {
  for (const DType t :
       {DType::kFloat4E2M1, DType::kFloat8E4M3FN, DType::kFloat8E5M2, DType::kInt4, DType::kInt8}) {
    SCOPED_TRACE(dtype_name(t));
    const auto weights = [&](DequantizeAttrs a, DType scale, const Dims& scales) {
      ExpertModel s;
      s.multiply(
          s.emit(a, {s.add(numbers(t, {kExperts, kColumns, kDepth})), s.add(numbers(scale, scales, true))}));
      return s;
    };
    const DType integer = t == DType::kInt8 ? DType::kInt4 : t;  // of 3 bits, these
    ExpertModel powers = weights({2, 32, kFloat}, DType::kFloat8E8M0, {kExperts, kColumns, 3});
    powers.expect_packed(integer, DType::kFloat8E8M0, 32);
    ExpertModel floats = weights({2, 16, kFloat}, DType::kFloat32, {kExperts, kColumns, 6});
    floats.expect_packed(integer, DType::kFloat8E8M0, 16);  // which holds these
    ExpertModel rows = weights({1, 0, kFloat}, DType::kFloat32, {kColumns});
    rows.expect_packed(integer, DType::kFloat32, kDepth);
    ExpertModel experts = weights({0, 0, kFloat}, DType::kFloat32, {kExperts});
    experts.expect_packed(integer, DType::kFloat32, kDepth);
    ExpertModel one = weights({0, 0, kFloat}, DType::kFloat32, {1});
    one.expect_packed(integer, DType::kFloat32, kDepth);
  }
}

// Blocks as an axis of their own, by products.
TEST(NarrowExperts, ProductsWithScales) {
  ExpertModel s;
  const ValueId w =
      s.emit(MulAttrs{},
             {s.emit(to(DType::kFloat32), {s.add(numbers(DType::kFloat4E2M1, {kExperts, kColumns, 3, 32}))}),
              s.add(numbers(DType::kFloat32, {kExperts, kColumns, 3, 1}, true))});
  s.multiply(s.emit(ViewAttrs{IntList{kExperts, kColumns, kDepth}}, {w}));
  s.expect_packed(DType::kFloat4E2M1, DType::kFloat8E8M0, 32);
}

TEST(NarrowExperts, IndicesIntoATable) {
  ExpertModel s;
  std::vector<float> table;
  for (int i = 0; i < 16; ++i) table.push_back(static_cast<float>(std::cbrt(i - 7.0)));
  std::vector<uint8_t> at(static_cast<size_t>(kExperts * kColumns * kDepth));
  for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<uint8_t>(i * 2654435761u >> 9 & 15);
  const ValueId places = s.add(Constant::of<uint8_t>(DType::kUint8, {kExperts, kColumns, 3, 32}, at));
  const ValueId w =
      s.emit(MulAttrs{}, {s.emit(GatherAttrs{0}, {s.add(Constant::of<float>(DType::kFloat32, {16}, table)),
                                                  s.emit(to(DType::kInt64), {places})}),
                          s.add(numbers(DType::kFloat32, {kExperts, kColumns, 3, 1}, true))});
  s.multiply(s.emit(ViewAttrs{IntList{kExperts, kColumns, kDepth}}, {w}));
  s.expect_packed(DType::kUint4, DType::kFloat8E8M0, 32);
  EXPECT_EQ(expert_product(s.graph)->inputs.size(), 7u);
}

// A product of batches; the constant may have its rows along the depth.
TEST(NarrowExperts, BatchesOfMatrices) {
  for (const bool turned : {false, true}) {
    ExpertModel s;
    const Dims dims = turned ? Dims{kExperts, kDepth, kColumns} : Dims{kExperts, kColumns, kDepth};
    const Dims scales = turned ? Dims{kExperts, 3, kColumns} : Dims{kExperts, kColumns, 3};
    const ValueId w =
        s.emit(DequantizeAttrs{turned ? 1 : 2, 32, kFloat},
               {s.add(numbers(DType::kFloat4E2M1, dims)), s.add(numbers(DType::kFloat8E8M0, scales, true))});
    s.output(s.emit(MatMulAttrs{0, turned ? 0 : 1}, {s.input({kExperts, 7, kDepth}), w}));
    s.expect_packed(DType::kFloat4E2M1, DType::kFloat8E8M0, 32);
    EXPECT_EQ(count_ops(s.graph, Op::kMatMul), 0);
  }
  ExpertModel plain;
  plain.output(plain.emit(
      MatMulAttrs{}, {plain.input({kExperts, 7, kDepth}), plain.constant({kExperts, kDepth, kColumns})}));
  EXPECT_EQ(recognise_any_low_bit(plain.graph), 0);
}

// [kRows, 2, columns, depth]
ValueId two_of_each(ExpertModel& s, ValueId w) { return s.emit(GatherAttrs{0}, {w, s.best(2)}); }

TEST(RecogniseExperts, ChosenMatrices) {
  enum Form { kColumn, kShared, kRow, kRowTurned, kSeveral, kForms };
  for (int form = 0; form < kForms; ++form) {
    SCOPED_TRACE(form);
    ExpertModel s;
    const bool across = form == kRow || form == kSeveral;
    const ValueId w =
        s.constant(across ? Dims{kExperts, kDepth, kColumns} : Dims{kExperts, kColumns, kDepth});
    const ValueId g = two_of_each(s, w);
    switch (form) {
      case kColumn:
        s.output(s.emit(MatMulAttrs{}, {g, s.input({kRows, 1, kDepth, 1})}));
        break;
      case kShared:
        s.output(s.emit(MatMulAttrs{}, {s.emit(ViewAttrs{IntList{kRows, 2 * kColumns, kDepth}}, {g}),
                                        s.input({kRows, kDepth, 1})}));
        break;
      case kRow:
        s.output(s.emit(MatMulAttrs{}, {s.input({kRows, 2, 1, kDepth}), g}));
        break;
      case kRowTurned:
        s.output(s.emit(MatMulAttrs{},
                        {s.input({kRows, 2, 1, kDepth}), s.emit(TransposeAttrs{IntList{0, 1, 3, 2}}, {g})}));
        break;
      default:
        s.output(s.emit(MatMulAttrs{}, {s.input({1, 2, 3, kDepth}), g}));
    }
    EXPECT_GT(apply(recognise_experts, s, 1e-6), 0);
    EXPECT_EQ(count_ops(s.graph, Op::kExpertFullyConnected), 1) << dump(s.graph);
    EXPECT_EQ(count_ops(s.graph, Op::kMatMul), 0);
    EXPECT_EQ(count_ops(s.graph, Op::kGather), 0);
  }
}

// Chosen codes and scales, which the model unpacks then: DequantizeLinear, or products.
TEST(RecogniseExperts, WhatIsUnpackedBehindTheGather) {
  for (const DType t : {DType::kInt8, DType::kFloat8E4M3FN})
    for (const bool products : {false, true}) {
      SCOPED_TRACE(::testing::Message() << dtype_name(t) << " " << products);
      ExpertModel s;
      const ValueId index = s.best(2);
      const ValueId q = s.emit(GatherAttrs{0}, {s.add(numbers(t, {kExperts, kColumns, kDepth})), index}),
                    scale = s.emit(GatherAttrs{0},
                                   {s.add(numbers(DType::kFloat32, {kExperts, kColumns, 3}, true)), index});
      ValueId w = kAbsent;
      if (products) {
        const ValueId spread = s.emit(BroadcastAttrs{IntList{kRows, 2, kColumns, 3, 32}},
                                      {s.emit(ViewAttrs{IntList{kRows, 2, kColumns, 3, 1}}, {scale})});
        w = s.emit(MulAttrs{}, {s.emit(to(DType::kFloat32), {q}),
                                s.emit(ViewAttrs{IntList{kRows, 2, kColumns, kDepth}}, {spread})});
      } else {
        w = s.emit(DequantizeAttrs{3, 32, kFloat}, {q, scale});
      }
      s.output(s.emit(MatMulAttrs{}, {s.emit(ViewAttrs{IntList{kRows, 2 * kColumns, kDepth}}, {w}),
                                      s.input({kRows, kDepth, 1})}));
      EXPECT_GT(apply(recognise_experts, s, 1e-6), 0);
      EXPECT_EQ(count_ops(s.graph, Op::kExpertFullyConnected), 1) << dump(s.graph);
      EXPECT_EQ(count_ops(s.graph, Op::kGather), 0);
      s.expect_packed(t == DType::kInt8 ? DType::kInt4 : t, DType::kFloat8E8M0, 32);
    }
}

TEST(RecogniseExperts, OthersStay) {
  const auto stays = [](auto make) {
    ExpertModel s;
    make(s);
    EXPECT_EQ(apply(recognise_experts, s), 0) << dump(s.graph);
  };
  const auto column = [](ExpertModel& s, ValueId w) {
    Dims dims = s.graph.value(w).dims;
    dims[dims.size() - 2] = dims.back(), dims.back() = 1;
    s.output(s.emit(MatMulAttrs{}, {w, s.input(dims)}));
  };
  // The depth would be joined.
  stays([&](ExpertModel& s) {
    const ValueId g = two_of_each(s, s.constant({kExperts, kDepth, kColumns}));
    s.output(s.emit(MatMulAttrs{}, {s.input({kRows, 1, 2 * kDepth}),
                                    s.emit(ViewAttrs{IntList{kRows, 2 * kDepth, kColumns}}, {g})}));
  });
  // Computed weights; rows of a table that are not matrices; several columns.
  stays([&](ExpertModel& s) { column(s, two_of_each(s, s.input({kExperts, kColumns, kDepth}))); });
  stays([&](ExpertModel& s) { column(s, two_of_each(s, s.constant({kExperts, kDepth}))); });
  stays([&](ExpertModel& s) {
    s.output(s.emit(MatMulAttrs{}, {two_of_each(s, s.constant({kExperts, kColumns, kDepth})),
                                    s.input({kRows, 2, kDepth, 3})}));
  });
  // Chosen numbers that are unpacked to what no product keeps packed, or by another index.
  stays([&](ExpertModel& s) {
    const ValueId index = s.best(2);
    const ConstantPtr q = numbers(DType::kInt8, {kExperts, kColumns, kDepth});
    const ValueId w = s.emit(to(DType::kFloat32), {s.emit(GatherAttrs{0}, {s.add(q), index})});
    column(s, s.emit(MulAttrs{},
                     {w, s.emit(GatherAttrs{0}, {s.constant({kExperts, kColumns, kDepth}), index})}));
  });
  stays([&](ExpertModel& s) {
    const ConstantPtr q = numbers(DType::kInt8, {kExperts, kColumns, kDepth});
    const ValueId w = s.emit(to(DType::kFloat32), {s.emit(GatherAttrs{0}, {s.add(q), s.best(2)})});
    column(s,
           s.emit(MulAttrs{}, {w, s.emit(GatherAttrs{0}, {s.constant({kExperts, kColumns, 1}), s.best(2)})}));
  });
  // Indices that may be negative.
  stays([&](ExpertModel& s) {
    const ValueId index = s.emit(to(DType::kInt64), {s.input({kRows})});
    column(s, s.emit(GatherAttrs{0}, {s.constant({kExperts, kColumns, kDepth}), index}));
  });
}

}  // namespace
}  // namespace testing
}  // namespace sinter::convert
