// The converter's memory planner: elision, in-place results, and that the checker finds what is
// wrong.
#include "converter/plan/planner.h"

#include <gtest/gtest.h>

#include <random>

#include "converter/ir/builder.h"
#include "runtime/core/op_enums.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

// A graph with one input [1, 16] that `build` continues.
struct Fixture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Builder builder{*graph};
  ValueId input;
  explicit Fixture(Dims dims) : input(graph->add_value("x", DType::kFloat32, std::move(dims))) {
    graph->inputs = {input};
  }
  ValueId emit(OpAttrs attrs, std::vector<ValueId> operands) {
    std::vector<ValueId> out;
    EXPECT_TRUE(builder.emit(std::move(attrs), std::move(operands), 1, &out).ok());
    return out[0];
  }
  PlannedProgram plan(std::vector<ValueId> outputs) {
    graph->outputs = std::move(outputs);
    return plan_model(graph, {}).programs[0];
  }
};

TEST(Planner, ElementwiseChainWorksInPlaceButNotOnTheInput) {
  Fixture f({1, 16});
  const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(AbsAttrs{}, {a}), c = f.emit(NegAttrs{}, {b});
  const PlannedProgram p = f.plan({c});
  const auto offset = [&](ValueId v) { return p.values[static_cast<size_t>(v)].offset; };
  EXPECT_NE(offset(a), offset(f.input));
  EXPECT_EQ(offset(b), offset(a));
  EXPECT_EQ(offset(c), offset(a));
  EXPECT_EQ(p.arena_bytes, 64u + 64u + kReadPadding);
}

// Takes everything, with this many bytes of workspace for each thread.
template <size_t kBytes>
Status takes_all(const Target&, const OpCall&, int threads, size_t* workspace) {
  *workspace = kBytes * static_cast<size_t>(threads);
  return ok_status();
}

TEST(Planner, LaterCandidatesGetTheWorkspaceThatTheArenaHasRoomFor) {
  constexpr uint64_t kBytes = 1 << 18;
  const auto plan = [](std::vector<const Platform*> platforms) {
    Fixture f({1, kBytes / 4});
    const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(ExpAttrs{}, {a});
    f.graph->outputs = {b};
    PlanOptions options;
    options.platforms = std::move(platforms);
    return plan_model(f.graph, options).programs[0];
  };
  const Platform first{.name = "first", .accept = takes_all<0>};
  // In the first step the arena is full; in the second the place of x is free.
  for (const auto& [second, grown] :
       {std::pair{Platform{.name = "second", .accept = takes_all<kBytes / 16>}, kBytes / 2},
        {Platform{.name = "second", .accept = takes_all<kBytes / 4>}, kBytes},  // for 4 of 8 threads
        {Platform{.name = "second", .accept = takes_all<2 * kBytes>}, uint64_t{0}}}) {
    const PlannedProgram p = plan({&first, &second});
    EXPECT_EQ(p.arena_bytes, plan({&first}).arena_bytes);
    EXPECT_EQ(p.steps[0].workspace_bytes, 0u);
    EXPECT_EQ(p.steps[1].workspace_bytes, grown);
    // Whoever is named has room.
    const std::vector<uint8_t> all{0, 1, 2}, first_only{0, 2};
    EXPECT_EQ(p.steps[0].candidates, first_only);
    EXPECT_EQ(p.steps[1].candidates, grown > 0 ? all : first_only);
  }
}

TEST(Planner, ThreadsOfTheFirstCandidateComeBeforeLaterCandidates) {
  constexpr uint64_t kBytes = 1 << 18;
  const auto second_step = [](std::vector<const Platform*> platforms) {
    Fixture f({1, kBytes / 4});
    const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(ExpAttrs{}, {a});
    f.graph->outputs = {b};
    PlanOptions options;
    options.platforms = std::move(platforms);
    const PlannedProgram p = plan_model(f.graph, options).programs[0];
    EXPECT_EQ(p.arena_bytes, 2 * kBytes + kReadPadding + p.steps[0].workspace_bytes);
    return p.steps[1].workspace_bytes;
  };
  const Platform first{.name = "first", .accept = takes_all<kBytes / 16>},
      little{.name = "little", .accept = takes_all<kBytes / 64>},
      much{.name = "much", .accept = takes_all<kBytes>};
  EXPECT_EQ(second_step({&first}), kBytes / 2);
  EXPECT_EQ(second_step({&first, &little}), kBytes / 2);
  EXPECT_EQ(second_step({&first, &much}), kBytes);
}

std::optional<double> slow_exp(Cpu, const OpCall& call) { return call.op == Op::kExp ? 300 : 100; }
std::optional<double> fast_exp(Cpu, const OpCall&) { return 200; }

TEST(Planner, TheFasterKernelIsTheFirstCandidate) {
  Fixture f({1, 16});
  const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(AbsAttrs{}, {a});
  f.graph->outputs = {b};
  PlanOptions options;
  options.target.architecture = Architecture::kX86_64;
  const Platform first{.name = "first", .accept = takes_all<0>, .time = slow_exp};
  const Platform second{.name = "second", .accept = takes_all<0>, .time = fast_exp};
  options.platforms = {&first, &second};
  const PlannedProgram p = plan_model(f.graph, options).programs[0];
  EXPECT_EQ(p.steps[0].candidates, (std::vector<uint8_t>{1, 0, 2}));
  EXPECT_EQ(p.steps[1].candidates, (std::vector<uint8_t>{0, 1, 2}));
}

TEST(Planner, OperandThatIsReadLaterIsNotOverwritten) {
  Fixture f({1, 16});
  const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(AbsAttrs{}, {a}),
                c = f.emit(AddAttrs{}, {a, b});
  const PlannedProgram p = f.plan({c});
  EXPECT_NE(p.values[static_cast<size_t>(b)].offset, p.values[static_cast<size_t>(a)].offset);
}

TEST(Planner, OperandThatAViewStillShowsIsNotOverwritten) {
  Fixture f({1, 16});
  const ValueId a = f.emit(ExpAttrs{}, {f.input});
  const ValueId view = f.emit(ViewAttrs{IntList{16, 1}, -1}, {a});
  const ValueId b = f.emit(AbsAttrs{}, {a});
  const ValueId c = f.emit(NegAttrs{}, {view});
  const PlannedProgram p = f.plan({b, c});
  EXPECT_TRUE(p.steps[1].elided);
  EXPECT_NE(p.values[static_cast<size_t>(b)].offset, p.values[static_cast<size_t>(a)].offset);
}

TEST(Planner, ConcatOfWholeRowsCostsNothing) {
  Fixture f({1, 16});
  const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(AbsAttrs{}, {f.input});
  const ValueId c = f.emit(ConcatAttrs{0}, {a, b});
  const ValueId d = f.emit(NegAttrs{}, {c});
  const PlannedProgram p = f.plan({d});
  EXPECT_TRUE(p.steps[2].elided);
  EXPECT_EQ(p.values[static_cast<size_t>(a)].offset, p.values[static_cast<size_t>(c)].offset);
  EXPECT_EQ(p.values[static_cast<size_t>(b)].offset, p.values[static_cast<size_t>(c)].offset + 64);
}

TEST(Planner, ConcatOfColumnsInterleavesThem) {
  Fixture f({4, 8});
  const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(AbsAttrs{}, {f.input});
  const ValueId inner = f.emit(ConcatAttrs{1}, {a, b}), c = f.emit(ExpAttrs{}, {f.input});
  const ValueId outer = f.emit(ConcatAttrs{1}, {c, inner});
  const PlannedProgram p = f.plan({f.emit(NegAttrs{}, {outer})});
  EXPECT_TRUE(p.steps[2].elided && p.steps[4].elided);
  const auto at = [&](ValueId v) -> const PlannedValue& { return p.values[static_cast<size_t>(v)]; };
  EXPECT_EQ(at(outer).strides, std::vector<int64_t>{});
  for (const ValueId v : {a, b, c, inner}) EXPECT_EQ(at(v).strides, (std::vector<int64_t>{96, 4}));
  EXPECT_EQ(at(c).offset, at(outer).offset);
  EXPECT_EQ(at(a).offset, at(outer).offset + 32);
  EXPECT_EQ(at(b).offset, at(outer).offset + 64);
  EXPECT_EQ(at(b).bytes, 3u * 96 + 32);
}

// What is not elided is copied, part by part.
TEST(Planner, ConcatBesideAConstantMovesOnlyThat) {
  Fixture f({64, 32});
  const ValueId a = f.emit(ExpAttrs{}, {f.input});
  const ValueId k = f.graph->add_constant(Constant::owned(DType::kFloat32, {64, 4}, Bytes(1024)));
  const ValueId c = f.emit(ConcatAttrs{1}, {k, a});
  const PlannedProgram p = f.plan({f.emit(NegAttrs{}, {c})});
  const auto at = [&](ValueId v) -> const PlannedValue& { return p.values[static_cast<size_t>(v)]; };
  EXPECT_EQ(at(a).offset, at(c).offset + 16);
  EXPECT_EQ(at(a).strides, (std::vector<int64_t>{144, 4}));
  ASSERT_EQ(p.graph->nodes.size(), 4u);
  int64_t moved = 0;
  for (size_t n = 0; n < p.steps.size(); ++n) {
    const Node& node = p.graph->nodes[n];
    EXPECT_EQ(p.steps[n].elided, node.op() == Op::kConcat);
    if (node.op() == Op::kBroadcast) moved += element_count(p.graph->value(node.outputs[0]).dims);
  }
  EXPECT_EQ(moved, 64 * 4);
}

TEST(Planner, PadIsAFrameAroundWhatIsPadded) {
  for (const PadMode mode : {PadMode::kConstant, PadMode::kReflect, PadMode::kEdge, PadMode::kWrap}) {
    SCOPED_TRACE(static_cast<int>(mode));
    Fixture f({1, 16, 16, 16});
    const ValueId a = f.emit(ExpAttrs{}, {f.input});
    PadAttrs pad;
    pad.mode = static_cast<int64_t>(mode);
    pad.pads = {0, 2, 1, 0, 0, 3, 2, 0};
    const ValueId b = f.emit(pad, {a});
    const PlannedProgram p = f.plan({f.emit(NegAttrs{}, {b})});
    const auto at = [&](ValueId v) -> const PlannedValue& { return p.values[static_cast<size_t>(v)]; };
    EXPECT_EQ(at(a).offset, at(b).offset + 2 * 19 * 64 + 64);
    EXPECT_EQ(std::vector<int64_t>(at(a).strides.begin() + 1, at(a).strides.end()),
              (std::vector<int64_t>{19 * 64, 64, 4}));
    EXPECT_EQ(p.graph->nodes[0].op(), Op::kExp);
    int64_t moved = 0;
    for (size_t n = 1; n + 1 < p.steps.size(); ++n)
      if (!p.steps[n].elided) moved += element_count(p.graph->value(p.graph->nodes[n].outputs[0]).dims);
    EXPECT_EQ(moved, (21 * 19 - 16 * 16) * 16);
  }
}

// Its operand is the caller's, or what makes it writes dense rows only, or it is not worth the steps.
TEST(Planner, PadThatCannotBeAFrameStaysAStep) {
  PadAttrs pad;
  pad.pads = {0, 1, 1, 0, 0, 1, 1, 0};
  for (const int64_t channels : {1, 16}) {
    Fixture f({1, 16, 16, channels});
    const ValueId a = f.emit(ExpAttrs{}, {f.input});
    const ValueId norm = f.emit(LrnAttrs{}, {a});
    const PlannedProgram p =
        f.plan({f.emit(NegAttrs{}, {f.emit(pad, {f.input})}), f.emit(AbsAttrs{}, {f.emit(pad, {norm})})});
    EXPECT_EQ(std::count_if(p.graph->nodes.begin(), p.graph->nodes.end(),
                            [](const Node& node) { return node.op() == Op::kPad; }),
              2);
    EXPECT_EQ(p.graph->nodes.size(), 6u);
  }
}

TEST(Planner, SliceOfColumnsIsReadInPlace) {
  Fixture f({4, 8});
  const ValueId a = f.emit(ExpAttrs{}, {f.input});
  const ValueId s = f.emit(SliceAttrs{IntList{0, 1}, IntList{2, 3}, IntList{2, 3}}, {a});
  const PlannedProgram p = f.plan({f.emit(NegAttrs{}, {s})});
  EXPECT_TRUE(p.steps[1].elided);
  EXPECT_EQ(p.values[static_cast<size_t>(s)].strides, (std::vector<int64_t>{64, 12}));
  EXPECT_EQ(p.values[static_cast<size_t>(s)].offset, p.values[static_cast<size_t>(a)].offset + 4);
}

// Takes dense operands only.
const Platform kDensePlatform = {.name = "dense",
                                 .serves = [](const Target&) { return true; },
                                 .accept =
                                     [](const Target&, const OpCall& call, int, size_t* workspace) {
                                       *workspace = 0;
                                       return call.in(0).dense() ? ok_status()
                                                                 : unsupported("only dense operands");
                                     }};
const Platform kAnyPlatform = {.name = "any",
                               .serves = [](const Target&) { return true; },
                               .accept =
                                   [](const Target&, const OpCall&, int, size_t* workspace) {
                                     *workspace = 0;
                                     return ok_status();
                                   }};

TEST(Planner, CandidatesTakeTheStridesOfTheirOperands) {
  Fixture f({4, 8});
  const ValueId a = f.emit(ExpAttrs{}, {f.input});
  const ValueId s = f.emit(SliceAttrs{IntList{0, 1}, IntList{2, 3}, IntList{2, 3}}, {a});
  f.graph->outputs = {f.emit(NegAttrs{}, {s})};
  PlanOptions options;
  options.platforms = {&kDensePlatform, &kAnyPlatform};
  const PlannedModel model = plan_model(f.graph, options);
  const PlannedProgram& p = model.programs[0];
  ASSERT_TRUE(p.steps[1].elided);
  EXPECT_EQ(p.steps[0].candidates, (std::vector<uint8_t>{0, 1, 2}));  // the last: the reference kernels
  EXPECT_EQ(p.steps[2].candidates, (std::vector<uint8_t>{1, 2}));
}

TEST(Planner, WhatMustBeDenseStaysSo) {
  Fixture f({4, 8});
  const ValueId a = f.emit(ExpAttrs{}, {f.input});
  const SliceAttrs half{IntList{0, 4}, IntList{1, 1}, IntList{4, 4}};
  const ValueId s = f.emit(half, {a}), t = f.emit(half, {f.emit(AbsAttrs{}, {f.input})});
  const ValueId flat = f.emit(ViewAttrs{IntList{16}, -1}, {s});
  const PlannedProgram p = f.plan({f.emit(NegAttrs{}, {flat}), t});
  for (const ValueId v : {s, t}) EXPECT_TRUE(p.values[static_cast<size_t>(v)].strides.empty());
  EXPECT_FALSE(p.steps[1].elided || p.steps[3].elided);
}

// A part that lives long before its join would keep the whole join's memory.
TEST(Planner, StridesThatCostMemoryAreNotUsed) {
  Fixture f({16, 1});
  const ValueId early = f.emit(ExpAttrs{}, {f.input});
  ValueId x = f.emit(BroadcastAttrs{IntList{16, 1024}}, {f.input});
  for (int i = 0; i < 3; ++i) x = f.emit(AddAttrs{}, {f.emit(AbsAttrs{}, {x}), x});
  const ValueId r = f.emit(ReduceAttrs{0, IntList{1}, 1}, {x});
  std::vector<ValueId> parts{early};
  for (int i = 0; i < 63; ++i) parts.push_back(f.emit(AddAttrs{}, {r, r}));
  f.graph->outputs = {f.emit(NegAttrs{}, {f.emit(ConcatAttrs{1}, parts)})};
  PlanOptions dense;
  dense.strides = false;
  const auto copy = std::make_shared<Graph>(*f.graph);
  EXPECT_LE(plan_model(f.graph, {}).programs[0].arena_bytes, plan_model(copy, dense).programs[0].arena_bytes);
}

TEST(Planner, ConcatOfOneValueTwiceIsCopied) {
  Fixture f({1, 16});
  const ValueId a = f.emit(ExpAttrs{}, {f.input});
  const ValueId c = f.emit(ConcatAttrs{0}, {a, a});
  const PlannedProgram p = f.plan({f.emit(NegAttrs{}, {c})});
  EXPECT_FALSE(p.steps[1].elided);
}

TEST(Planner, PublicInputsAndOutputsNeverShareMemory) {
  Fixture f({1, 16});
  const ValueId view = f.emit(ViewAttrs{IntList{16}, -1}, {f.input});
  const PlannedProgram p = f.plan({view});
  EXPECT_FALSE(p.steps[0].elided);
  EXPECT_NE(p.values[static_cast<size_t>(view)].offset, p.values[static_cast<size_t>(f.input)].offset);
}

TEST(Planner, WideJoinsBecomeTrees) {
  Fixture f({1, 4});
  const ValueId a = f.emit(ExpAttrs{}, {f.input});
  const ValueId c = f.emit(ConcatAttrs{0}, std::vector<ValueId>(250, a));
  const PlannedProgram p = f.plan({c});
  // Exp, 16 joins of 15 and one of 10, joins of 15 and 2 of these, their join.
  ASSERT_EQ(p.graph->nodes.size(), 21u);
  for (const Node& node : p.graph->nodes) EXPECT_LE(node.inputs.size() + 1, detail::kMaxOperands);
  EXPECT_EQ(check(*p.graph), "");
  EXPECT_EQ(p.graph->value(c).dims, (Dims{250, 4}));
}

TEST(PlanChecker, FindsAnOverlap) {
  Fixture f({1, 16});
  const ValueId a = f.emit(ExpAttrs{}, {f.input}), b = f.emit(AbsAttrs{}, {a}),
                c = f.emit(AddAttrs{}, {a, b});
  f.graph->outputs = {c};
  PlannedModel model = plan_model(f.graph, {});
  EXPECT_EQ(check_plan(model), "");
  auto& values = model.programs[0].values;
  values[static_cast<size_t>(b)].offset = values[static_cast<size_t>(a)].offset;
  EXPECT_NE(check_plan(model), "");
}

TEST(PlanChecker, FindsAValueOutsideTheArena) {
  Fixture f({1, 16});
  f.graph->outputs = {f.emit(ExpAttrs{}, {f.input})};
  PlannedModel model = plan_model(f.graph, {});
  model.programs[0].arena_bytes -= 1, model.programs[0].regions[0].bytes -= 1;
  EXPECT_NE(check_plan(model), "");
}

// Any graph of element-wise operations, views, slices and joins gets a plan that the checker accepts
// (plan_model throws otherwise).
TEST(Planner, RandomGraphsGetSoundPlans) {
  std::minstd_rand random(3);
  for (int round = 0; round < 100; ++round) {
    Fixture f({4, 16});
    std::vector<ValueId> known{f.input};
    for (int n = 0; n < 25; ++n) {
      const ValueId x = known[random() % known.size()];
      const Dims d = f.graph->value(x).dims;
      switch (random() % 7) {
        case 5:
          known.push_back(f.emit(
              SliceAttrs{IntList{0, d[1] / 3}, IntList{1, 2}, IntList{d[0], (d[1] - d[1] / 3 + 1) / 2}},
              {x}));
          break;
        case 6: {
          const ValueId y = known[random() % known.size()];
          if (f.graph->value(y).dims[0] == d[0] && d[1] < 64) known.push_back(f.emit(ConcatAttrs{1}, {x, y}));
          break;
        }
        case 0:
          known.push_back(f.emit(AbsAttrs{}, {x}));
          break;
        case 1:
          known.push_back(f.emit(AddAttrs{}, {x, x}));
          break;
        case 2:
          known.push_back(f.emit(ViewAttrs{IntList{d[1], d[0]}, -1}, {x}));
          break;
        case 3:
          known.push_back(
              f.emit(SliceAttrs{IntList{d[0] / 2, 0}, IntList{1, 1}, IntList{d[0] - d[0] / 2, d[1]}}, {x}));
          break;
        default: {
          const ValueId y = known[random() % known.size()];
          if (f.graph->value(y).dims[1] == d[1] && d[0] < 64) known.push_back(f.emit(ConcatAttrs{0}, {x, y}));
        }
      }
    }
    std::vector<ValueId> outputs{f.emit(NegAttrs{}, {known.back()}),
                                 f.emit(ExpAttrs{}, {known[known.size() / 2]})};
    const PlannedProgram p = f.plan(outputs);
    EXPECT_GE(p.arena_bytes, p.lower_bound);
  }
}

}  // namespace
}  // namespace sinter::convert
