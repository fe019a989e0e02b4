// Steps in memories of their own: where they go, which transfers that takes, and regions planned one by one.
#include "converter/plan/place_memories.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "converter/ir/builder.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Two backends with memory of their own that take what these sets list.
std::set<Op> first_takes, second_takes;
Status take(const std::set<Op>& ops, const OpCall& call, size_t* workspace) {
  if (ops.count(call.op) == 0) return unsupported("not taken");
  *workspace = call.op == Op::kMatMul ? 128 : 0;
  return ok_status();
}
Status take_first(const Target&, const OpCall& call, int, size_t* workspace) {
  return take(first_takes, call, workspace);
}
Status take_second(const Target&, const OpCall& call, int, size_t* workspace) {
  return take(second_takes, call, workspace);
}

struct PlaceMemories : ::testing::Test {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Platform far{.name = "far", .accept = take_first, .own_memory = true};
  Platform farther{.name = "farther", .accept = take_second, .own_memory = true};
  PlanOptions options;
  PlannedModel model;

  PlaceMemories() {
    options.platforms = {&far, &farther};
    options.islands = true;
    first_takes.clear(), second_takes.clear();
  }
  ValueId input(Dims dims) {
    graph->inputs.push_back(graph->add_value("x", DType::kFloat32, std::move(dims)));
    return graph->inputs.back();
  }
  ValueId emit(OpAttrs attrs, std::vector<ValueId> operands, size_t outputs = 1) {
    Builder builder(*graph);
    std::vector<ValueId> out;
    EXPECT_TRUE(builder.emit(std::move(attrs), std::move(operands), outputs, &out).ok());
    return out.back();
  }
  const PlannedProgram& plan(std::vector<ValueId> outputs) {
    graph->outputs = std::move(outputs);
    model = plan_model(graph, options);
    EXPECT_EQ(check(*model.programs[0].graph), "");
    return model.programs[0];
  }
  // "Abs >far Exp <far Neg": a transfer to or from a memory, steps in one with its number.
  std::string steps() const {
    const PlannedProgram& p = model.programs[0];
    std::string text;
    for (size_t n = 0; n < p.steps.size(); ++n) {
      const Node& node = p.graph->nodes[n];
      const uint8_t m = memory_of(*p.graph, node);
      text += n > 0 ? " " : "";
      if (is_transfer(*p.graph, node))
        text += (p.graph->value(node.outputs[0]).memory > 0 ? ">" : "<") + std::to_string(m);
      else
        text += std::string(op_name(node.op())) + (m > 0 ? std::to_string(m) : "") +
                (p.steps[n].elided ? "-" : "");
    }
    return text;
  }
  static uint64_t region_bytes(const PlannedProgram& p, uint8_t memory) {
    for (const PlannedRegion& r : p.regions)
      if (r.memory == memory) return r.bytes;
    return 0;
  }
};

TEST_F(PlaceMemories, AStepOfAnotherMemoryStandsBetweenTransfers) {
  first_takes = {Op::kExp};
  const ValueId x = input({1, 16});
  const PlannedProgram& p = plan({emit(NegAttrs{}, {emit(ExpAttrs{}, {emit(AbsAttrs{}, {x})})})});
  EXPECT_EQ(steps(), "Abs >1 Exp1 <1 Neg");
  EXPECT_EQ(p.steps[1].candidates, std::vector<uint8_t>{0});
  EXPECT_EQ(p.steps[2].candidates, std::vector<uint8_t>{0});
  EXPECT_EQ(p.steps[3].candidates, std::vector<uint8_t>{0});
  EXPECT_EQ(p.steps[0].candidates, std::vector<uint8_t>{2});  // reference: the others do not see its operands
  ASSERT_EQ(p.regions.size(), 2u);
  // Host: the input, then what Abs gives where Neg works in place on what comes back. Far: Exp in place.
  EXPECT_EQ(p.regions[0].bytes, 64u + 64u + kReadPadding);
  EXPECT_EQ(p.regions[1].bytes, 64u + kReadPadding);
  EXPECT_EQ(p.arena_bytes, p.regions[0].bytes + p.regions[1].bytes);
  EXPECT_TRUE(p.proved);
}

TEST_F(PlaceMemories, AValueMovesOnceForAllReadersOfAMemory) {
  first_takes = {Op::kExp, Op::kSqrt};
  const ValueId x = input({1, 16});
  const ValueId a = emit(ExpAttrs{}, {x}), b = emit(SqrtAttrs{}, {x});
  const ValueId c = emit(NegAttrs{}, {a}), d = emit(AbsAttrs{}, {a});
  plan({b, c, d, a});
  EXPECT_EQ(steps(), ">1 Exp1 Sqrt1 <1 Neg Abs <1");
}

TEST_F(PlaceMemories, TransfersStandBeforeTheirFirstReader) {
  first_takes = {Op::kExp};
  const ValueId x = input({1, 16}), y = input({1, 16});
  const ValueId a = emit(ExpAttrs{}, {x}), b = emit(AbsAttrs{}, {y}), c = emit(ExpAttrs{}, {b});
  plan({emit(AddAttrs{}, {a, c})});
  EXPECT_EQ(steps(), ">1 Exp1 Abs >1 Exp1 <1 <1 Add");
}

TEST_F(PlaceMemories, FromOneMemoryToAnotherThroughTheHost) {
  first_takes = {Op::kExp}, second_takes = {Op::kAbs};
  const ValueId x = input({1, 16});
  const PlannedProgram& p = plan({emit(NegAttrs{}, {emit(AbsAttrs{}, {emit(ExpAttrs{}, {x})})})});
  EXPECT_EQ(steps(), ">1 Exp1 <1 >2 Abs2 <2 Neg");
  ASSERT_EQ(p.regions.size(), 3u);
  EXPECT_EQ(p.regions[2].memory, 2);
}

TEST_F(PlaceMemories, ViewsAndSlicesSideBySideStayWithTheirOperand) {
  first_takes = {Op::kExp};
  const ValueId x = input({4, 16});
  const ValueId a = emit(ExpAttrs{}, {x});
  const ValueId half = emit(SliceAttrs{IntList{2, 0}, IntList{1, 1}, IntList{2, 16}}, {a});
  const ValueId flat = emit(ViewAttrs{IntList{32}, -1}, {half});
  const PlannedProgram& p = plan({emit(NegAttrs{}, {emit(ExpAttrs{}, {flat})})});
  EXPECT_EQ(steps(), ">1 Exp1 Slice1- View1- Exp1 <1 Neg");
  EXPECT_EQ(region_bytes(p, 1), 256u + kReadPadding);  // all in place
}

TEST_F(PlaceMemories, JoinsThatTheBackendRefusesAreMadeOnTheHost) {
  first_takes = {Op::kExp};
  const ValueId x = input({4, 16});
  const ValueId a = emit(ExpAttrs{}, {x}), b = emit(ExpAttrs{}, {a});
  plan({emit(NegAttrs{}, {emit(ConcatAttrs{0}, {a, b})})});
  EXPECT_EQ(steps(), ">1 Exp1 Exp1 <1 <1 Concat- Neg");
}

TEST_F(PlaceMemories, APublicCopyOfAValueElsewhereIsOneTransfer) {
  first_takes = {Op::kExp};
  const ValueId x = input({4, 16});
  plan({emit(CopyAttrs{}, {emit(ExpAttrs{}, {x})})});
  EXPECT_EQ(steps(), ">1 Exp1 Copy1- <1");
}

TEST_F(PlaceMemories, LengthsComeToTheHost) {
  first_takes = {Op::kNonZero, Op::kNeg};
  const ValueId x = input({4, 4});
  Builder builder(*graph);
  std::vector<ValueId> out;
  ASSERT_TRUE(builder.emit(NonZeroAttrs{}, {x}, 2, &out).ok());
  const ValueId rows = emit(NegAttrs{}, {out[0]});
  graph->value(rows).bounded_dims = {{1, out[1]}};
  const PlannedProgram& p = plan({rows});
  EXPECT_EQ(steps(), ">1 NonZero1 Neg1 <1 <1");
  for (const auto& [axis, count] : p.graph->value(p.graph->outputs[0]).bounded_dims)
    EXPECT_EQ(p.graph->value(count).memory, 0);
}

TEST_F(PlaceMemories, CheapIslandsStayOnTheHost) {
  options.islands = false;
  first_takes = {Op::kExp, Op::kMatMul};
  const ValueId x = input({16, 16});
  const ValueId a = emit(AbsAttrs{}, {emit(ExpAttrs{}, {x})});
  const ValueId product = emit(MatMulAttrs{}, {a, a});
  plan({emit(NegAttrs{}, {emit(ExpAttrs{}, {product})})});
  EXPECT_EQ(steps(), "Exp Abs >1 MatMul1 Exp1 <1 Neg");
  EXPECT_EQ(model.programs[0].steps[3].workspace_bytes, 128u);
}

TEST_F(PlaceMemories, LongIslandsAreWorthTheirTransfers) {
  options.islands = false;
  first_takes = {Op::kExp};
  ValueId v = input({16, 16});
  for (int i = 0; i < 3; ++i) v = emit(ExpAttrs{}, {v});
  plan({emit(NegAttrs{}, {v})});
  EXPECT_EQ(steps(), ">1 Exp1 Exp1 Exp1 <1 Neg");
}

TEST_F(PlaceMemories, NothingChangesWhereNoBackendHasMemoryOfItsOwn) {
  first_takes = {Op::kExp};
  far.own_memory = farther.own_memory = false;
  const ValueId x = input({1, 16});
  const PlannedProgram& p = plan({emit(NegAttrs{}, {emit(ExpAttrs{}, {x})})});
  EXPECT_EQ(steps(), "Exp Neg");
  EXPECT_EQ(p.steps[0].candidates, (std::vector<uint8_t>{0, 2}));
  EXPECT_EQ(p.regions.size(), 1u);
}

TEST_F(PlaceMemories, TheFirstBackendThatTakesAStepDecides) {
  far.own_memory = false;  // the near one comes first
  first_takes = {Op::kExp}, second_takes = {Op::kExp, Op::kAbs};
  const ValueId x = input({1, 16});
  const PlannedProgram& p = plan({emit(AbsAttrs{}, {emit(ExpAttrs{}, {x})})});
  EXPECT_EQ(steps(), "Exp >2 Abs2 <2");
  EXPECT_EQ(p.steps[0].candidates, (std::vector<uint8_t>{0, 2}));  // not the one that cannot see its operands
}

TEST_F(PlaceMemories, TheCheckerFindsWhatIsPlacedInTheWrongMemory) {
  first_takes = {Op::kExp};
  const ValueId x = input({1, 16});
  const ValueId a = emit(ExpAttrs{}, {emit(AbsAttrs{}, {x})});
  const PlannedModel good = (plan({emit(NegAttrs{}, {a})}), model);
  ASSERT_EQ(steps(), "Abs >1 Exp1 <1 Neg");
  ASSERT_EQ(check_plan(good), "");
  const auto broken = [&](auto&& change) {
    PlannedModel bad = good;
    change(bad.programs[0]);
    return !check_plan(bad).empty();
  };
  const auto far_value = static_cast<size_t>(good.programs[0].graph->nodes[2].inputs[0]);
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.values[far_value].region = 0; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.values[far_value].region = 2; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.values[static_cast<size_t>(x)].region = 1; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.steps[2].candidates = {2}; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.steps[1].candidates = {0, 2}; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.steps[0].candidates = {0, 2}; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.steps[1].workspace_bytes = 64; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.steps[1].elided = true; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.regions[1].memory = 0; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) { p.regions[1].bytes += 64; }));
  EXPECT_TRUE(broken([&](PlannedProgram& p) {
    auto graph = std::make_shared<Graph>(*p.graph);
    graph->nodes[1].attrs = NegAttrs{};  // no transfer any more
    p.graph = graph;
  }));
}

// Any graph and any two sets of operations: sound plans (plan_model throws otherwise), no value moved twice,
// nothing below its bound, and no more bytes than in the given order.
TEST_F(PlaceMemories, RandomGraphsGetSoundPlans) {
  std::minstd_rand random(5);
  const std::vector<Op> some{Op::kAbs,    Op::kAdd,  Op::kMatMul,   Op::kSlice,
                             Op::kConcat, Op::kView, Op::kTranspose};
  size_t transfers = 0, regions = 0;
  for (int round = 0; round < 150; ++round) {
    graph = std::make_shared<Graph>();
    first_takes.clear(), second_takes.clear();
    for (const Op op : some)
      if (random() % 2 == 0) (random() % 3 == 0 ? second_takes : first_takes).insert(op);
    options.islands = round % 2 == 0, options.thorough = round % 3 == 0, options.overlap = round % 5 == 0;
    std::vector<ValueId> known{input({4, 16}), input({16, 4})};
    for (int n = 0; n < 25; ++n) {
      const ValueId x = known[random() % known.size()], y = known[random() % known.size()];
      const Dims d = graph->value(x).dims, e = graph->value(y).dims;
      switch (random() % 7) {
        case 0:
          known.push_back(emit(AbsAttrs{}, {x}));
          break;
        case 1:
          known.push_back(emit(AddAttrs{}, {x, d == e ? y : x}));
          break;
        case 2:
          known.push_back(emit(ViewAttrs{IntList{d[1], d[0]}, -1}, {x}));
          break;
        case 3:
          known.push_back(
              emit(SliceAttrs{IntList{d[0] / 2, 0}, IntList{1, 1}, IntList{d[0] - d[0] / 2, d[1]}}, {x}));
          break;
        case 4:
          if (d[1] == e[0]) known.push_back(emit(MatMulAttrs{}, {x, y}));
          break;
        case 5:
          known.push_back(emit(TransposeAttrs{IntList{1, 0}}, {x}));
          break;
        default:
          if (e[1] == d[1] && d[0] < 64) known.push_back(emit(ConcatAttrs{0}, {x, y}));
      }
    }
    const PlannedProgram& p =
        plan({emit(NegAttrs{}, {known.back()}), emit(ExpAttrs{}, {known[known.size() / 2]})});
    std::set<std::pair<ValueId, uint8_t>> moved;
    for (const Node& node : p.graph->nodes) {
      if (!is_transfer(*p.graph, node)) continue;
      ++transfers;
      const uint8_t from = p.graph->value(node.inputs[0]).memory, to = p.graph->value(node.outputs[0]).memory;
      EXPECT_TRUE(from == 0 || to == 0);
      EXPECT_TRUE(moved.emplace(node.inputs[0], to).second);
    }
    for (const PlannedRegion& r : p.regions) EXPECT_GE(r.bytes, r.lower_bound);
    EXPECT_LE(p.arena_bytes, p.given_order_bytes);
    regions += p.regions.size();
  }
  EXPECT_GT(transfers, 300u);
  EXPECT_GT(regions, 250u);
}

}  // namespace
}  // namespace sinter::convert
