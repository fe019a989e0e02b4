// Bodies of If and Loop in memories of their own: where their steps go, what is moved once and what in every
// trip.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "converter/ir/builder.h"
#include "converter/plan/place_memories.h"
#include "runtime/core/op_enums.h"
#include "tests/unit/random_bodies.h"

namespace sinter::convert {
namespace {

std::set<Op> taken_there;
Status take_there(const Target&, const OpCall& call, int, size_t* workspace) {
  if (taken_there.count(call.op) == 0) return unsupported("not taken");
  *workspace = call.op == Op::kMatMul ? 128 : 0;
  return ok_status();
}

struct PlaceBodies : ::testing::Test {
  std::shared_ptr<Graph> entry = std::make_shared<Graph>();
  Platform there{.name = "there", .accept = take_there, .own_memory = true};
  PlanOptions options;
  PlannedModel model;

  PlaceBodies() {
    options.target.architecture = Architecture::kX86_64;
    options.platforms = {&there};
    options.islands = true;
    taken_there = {Op::kMatMul, Op::kExp, Op::kAdd, Op::kCopy, Op::kView};
  }
  static ValueId input(Graph& g, DType dtype, Dims dims, const char* name = "") {
    g.inputs.push_back(g.add_value(name, dtype, std::move(dims)));
    return g.inputs.back();
  }
  static ValueId emit(Graph& g, OpAttrs attrs, std::vector<ValueId> operands) {
    Builder builder(g);
    std::vector<ValueId> out;
    EXPECT_TRUE(builder.emit(std::move(attrs), std::move(operands), 1, &out).ok());
    return out.back();
  }
  static ValueId yes(Graph& g) { return g.add_constant(Constant::scalar_int(DType::kBool, 1)); }
  // A body with its iteration number, its condition and carried values of [16, 16].
  static std::shared_ptr<Graph> loop_body(int64_t carried) {
    auto body = std::make_shared<Graph>();
    input(*body, DType::kInt64, {}, "i"), input(*body, DType::kBool, {}, "c");
    for (int64_t i = 0; i < carried; ++i) input(*body, DType::kFloat32, {16, 16}, "h");
    return body;
  }
  // Its carried results, then its scanned ones.
  static std::vector<ValueId> loop(Graph& g, const std::shared_ptr<Graph>& body, int64_t carried,
                                   std::vector<ValueId> inputs, int64_t trips = 10) {
    std::vector<ValueId> outputs;
    for (size_t i = 1; i < body->outputs.size(); ++i) {
      const Value& v = body->value(body->outputs[i]);
      Dims dims = v.dims;
      if (static_cast<int64_t>(i) > carried) dims.insert(dims.begin(), trips);
      outputs.push_back(g.add_value("", v.dtype, dims));
    }
    std::vector<ValueId> all = outputs;
    all.push_back(kAbsent);
    g.nodes.push_back({LoopAttrs{trips, carried}, std::move(inputs), all, "loop", "", {body}});
    return outputs;
  }
  void plan(std::vector<ValueId> outputs) {
    entry->outputs = std::move(outputs);
    ASSERT_EQ(check(*entry), "");
    model = plan_model(entry, options);
    EXPECT_EQ(check(*model.programs[0].graph), "");
  }
  // "MatMul1 <1 Loop": a transfer to or from a memory, steps in one with its number.
  std::string steps(size_t program = 0) const {
    const PlannedProgram& p = model.programs[program];
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
  static std::vector<uint8_t> memories(const PlannedProgram& p, const std::vector<ValueId>& ids) {
    std::vector<uint8_t> list;
    for (const ValueId id : ids) list.push_back(id < 0 ? 0 : p.graph->value(id).memory);
    return list;
  }
};
using Memories = std::vector<uint8_t>;

TEST_F(PlaceBodies, CarriedValuesStayWhereTheBodyComputesThem) {
  const ValueId x = input(*entry, DType::kFloat32, {16, 16}), w = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(1);
  const ValueId taken = input(*body, DType::kFloat32, {16, 16});
  body->outputs = {yes(*body),
                   emit(*body, ExpAttrs{}, {emit(*body, MatMulAttrs{}, {body->inputs[2], taken})})};
  plan({emit(*entry, NegAttrs{}, loop(*entry, body, 1, {kAbsent, kAbsent, x, w}))});
  EXPECT_EQ(steps(), ">1 >1 Loop <1 Neg");
  EXPECT_EQ(steps(1), "MatMul1 Exp1");
  const PlannedProgram &outer = model.programs[0], &inner = model.programs[1];
  EXPECT_EQ(memories(inner, inner.graph->inputs), (Memories{0, 0, 1, 1}));
  EXPECT_EQ(memories(inner, inner.graph->outputs), (Memories{0, 1}));
  ASSERT_EQ(inner.regions.size(), 2u);
  const PlannedStep& step = outer.steps[2];
  ASSERT_EQ(step.device_workspaces.size(), 1u);
  EXPECT_EQ(step.device_workspaces[0].bytes, inner.regions[1].bytes);
  EXPECT_EQ(step.workspace_bytes, inner.regions[0].bytes);
  EXPECT_EQ(step.candidates, Memories{1});  // the session, as on the reference kernels
}

TEST_F(PlaceBodies, OnlyTheConditionComesToTheHost) {
  taken_there.insert({Op::kCompare, Op::kSlice});
  const ValueId x = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(1);
  const ValueId next = emit(*body, MatMulAttrs{}, {body->inputs[2], body->inputs[2]});
  const ValueId first = emit(*body, SliceAttrs{IntList{0, 0}, IntList{1, 1}, IntList{1, 1}}, {next});
  const ValueId scalar = emit(*body, ViewAttrs{IntList{}, -1}, {first});
  const ValueId one = body->add_constant(Constant::scalar(DType::kFloat32, 1));
  body->outputs = {emit(*body, CompareAttrs{static_cast<int64_t>(CompareFn::kGreater)}, {scalar, one}), next};
  plan({emit(*entry, NegAttrs{}, loop(*entry, body, 1, {kAbsent, kAbsent, x}))});
  EXPECT_EQ(steps(), ">1 Loop <1 Neg");
  EXPECT_EQ(steps(1), "MatMul1 Slice1- View1- Compare1 <1");
}

TEST_F(PlaceBodies, ValuesThatOnlyTheHostComputesStayThere) {
  const ValueId x = input(*entry, DType::kFloat32, {16, 16}), y = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(2);
  const ValueId on_host = emit(*body, NegAttrs{}, {body->inputs[2]});
  body->outputs = {yes(*body), on_host, emit(*body, MatMulAttrs{}, {body->inputs[3], body->inputs[3]})};
  plan(loop(*entry, body, 2, {kAbsent, kAbsent, x, y}));
  EXPECT_EQ(steps(), ">1 Loop <1");
  EXPECT_EQ(steps(1), "Neg MatMul1");
  EXPECT_EQ(memories(model.programs[1], model.programs[1].graph->inputs), (Memories{0, 0, 0, 1}));
}

// Between host and device work there is one transfer in each direction, whichever memory it is carried in.
TEST_F(PlaceBodies, AValueThatBothWorkOnMovesInEveryTrip) {
  const ValueId x = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(1);
  body->outputs = {yes(*body), emit(*body, NegAttrs{}, {emit(*body, ExpAttrs{}, {body->inputs[2]})})};
  plan(loop(*entry, body, 1, {kAbsent, kAbsent, x}));
  EXPECT_EQ(steps(), "Loop");
  EXPECT_EQ(steps(1), ">1 Exp1 <1 Neg");
}

TEST_F(PlaceBodies, ConstantsAreCopiedToWhereTheyAreCarried) {
  auto body = loop_body(1);
  body->outputs = {yes(*body), emit(*body, MatMulAttrs{}, {body->inputs[2], body->inputs[2]})};
  const std::vector<float> some(256, 0.5f);
  const ValueId start =
      entry->add_constant(Constant::of<float>(DType::kFloat32, {16, 16}, std::span<const float>(some)));
  plan(loop(*entry, body, 1, {kAbsent, kAbsent, start}));
  EXPECT_EQ(steps(), "Copy1 Loop <1");
}

TEST_F(PlaceBodies, ConstantsGoThroughTheHostWhereTheDeviceDoesNotCopyThem) {
  taken_there.erase(Op::kCopy);
  auto body = loop_body(1);
  body->outputs = {yes(*body), emit(*body, MatMulAttrs{}, {body->inputs[2], body->inputs[2]})};
  const std::vector<float> some(256, 0.5f);
  const ValueId start =
      entry->add_constant(Constant::of<float>(DType::kFloat32, {16, 16}, std::span<const float>(some)));
  plan(loop(*entry, body, 1, {kAbsent, kAbsent, start}));
  EXPECT_EQ(steps(), "Copy >1 Loop <1");
}

// Unchanged, exchanged, constant and captured results.
TEST_F(PlaceBodies, ResultsThatTheBodyDoesNotCompute) {
  const ValueId x = input(*entry, DType::kFloat32, {16, 16}), y = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(3);
  const ValueId taken = input(*body, DType::kFloat32, {16, 16});
  const ValueId product = emit(*body, MatMulAttrs{}, {body->inputs[2], body->inputs[3]});
  const ValueId last = emit(*body, AddAttrs{}, {product, body->inputs[4]});
  body->outputs = {yes(*body), body->inputs[2], taken, last, taken};
  const std::vector<ValueId> out = loop(*entry, body, 3, {kAbsent, kAbsent, x, y, x, y});
  plan({out[0], out[1], out[2], out[3]});
  EXPECT_EQ(steps(1), "MatMul1 Add1");
  // What is captured is also scanned, on the host, and so there twice.
  EXPECT_EQ(memories(model.programs[1], model.programs[1].graph->inputs), (Memories{0, 0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(memories(model.programs[1], model.programs[1].graph->outputs), (Memories{0, 1, 1, 1, 0}));
  EXPECT_EQ(model.programs[0].graph->nodes[2].inputs.size(), 7u);
}

// A device counts trips itself: a carried value that starts with 0.
TEST_F(PlaceBodies, TheIterationNumberIsCountedOnTheDevice) {
  taken_there.insert(Op::kGather);
  const ValueId x = input(*entry, DType::kFloat32, {10, 16, 16}),
                h = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(1);
  const ValueId taken = input(*body, DType::kFloat32, {10, 16, 16});
  const ValueId row = emit(*body, GatherAttrs{0}, {taken, body->inputs[0]});
  const ValueId next = emit(*body, MatMulAttrs{}, {body->inputs[2], row});
  body->outputs = {yes(*body), next, next};
  plan(loop(*entry, body, 1, {kAbsent, kAbsent, h, x}));
  EXPECT_EQ(steps(), ">1 >1 Copy1 Loop <1 <1");
  EXPECT_EQ(steps(1), "Gather1 MatMul1 Add1");
  const Node& node = model.programs[0].graph->nodes[3];
  EXPECT_EQ(node.as<LoopAttrs>()->carried, 2);
  EXPECT_EQ(node.outputs.size(), 4u);
  EXPECT_EQ(node.outputs[1], kAbsent);
  EXPECT_EQ(memories(model.programs[1], model.programs[1].graph->outputs), (Memories{0, 1, 1, 1}));
}

TEST_F(PlaceBodies, BranchesMeetOnTheDevice) {
  const ValueId q = input(*entry, DType::kBool, {}), x = input(*entry, DType::kFloat32, {16, 16});
  const auto branch = [&](const OpAttrs& attrs) {
    auto body = std::make_shared<Graph>();
    const ValueId taken = input(*body, DType::kFloat32, {16, 16});
    body->outputs = {std::holds_alternative<std::monostate>(attrs) ? taken : emit(*body, attrs, {taken})};
    return body;
  };
  const auto choose = [&](const OpAttrs& then, const OpAttrs& otherwise) {
    const ValueId r = entry->add_value("", DType::kFloat32, {16, 16});
    entry->nodes.push_back({IfAttrs{}, {q, x}, {r}, "if", "", {branch(then), branch(otherwise)}});
    return r;
  };
  plan({choose(ExpAttrs{}, NegAttrs{}), choose(ExpAttrs{}, std::monostate{}),
        choose(NegAttrs{}, std::monostate{})});
  // The first result comes from a device, whose branch computes it there; the host's branch brings its own.
  EXPECT_EQ(steps(), ">1 If If If <1 <1");
  EXPECT_EQ(steps(1), "Exp1");
  EXPECT_EQ(steps(2), "Neg >1");
  EXPECT_EQ(steps(3), "Exp1");
  EXPECT_EQ(steps(4), "");
  EXPECT_EQ(steps(5), "Neg");
}

// In bodies of bodies what is captured far outside is moved there.
TEST_F(PlaceBodies, TransfersAreOutsideOfAllLoops) {
  const ValueId x = input(*entry, DType::kFloat32, {16, 16}), w = input(*entry, DType::kFloat32, {16, 16});
  auto inner = loop_body(1), outer = loop_body(1);
  const ValueId taken = input(*inner, DType::kFloat32, {16, 16});
  inner->outputs = {yes(*inner), emit(*inner, MatMulAttrs{}, {inner->inputs[2], taken})};
  const ValueId passed = input(*outer, DType::kFloat32, {16, 16});
  const std::vector<ValueId> last =
      loop(*outer, inner, 1, {kAbsent, kAbsent, emit(*outer, ExpAttrs{}, {outer->inputs[2]}), passed});
  outer->outputs = {yes(*outer), last[0]};
  plan(loop(*entry, outer, 1, {kAbsent, kAbsent, x, w}));
  EXPECT_EQ(steps(), ">1 >1 Loop <1");
  EXPECT_EQ(steps(1), "Exp1 Loop");
  EXPECT_EQ(steps(2), "MatMul1");
}

TEST_F(PlaceBodies, SmallBodiesStayOnTheHost) {
  options.islands = false;
  const ValueId x = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(1);
  body->outputs = {yes(*body), emit(*body, MatMulAttrs{}, {body->inputs[2], body->inputs[2]})};
  plan(loop(*entry, body, 1, {kAbsent, kAbsent, x}));
  EXPECT_EQ(steps(), "Loop");
  EXPECT_EQ(steps(1), "MatMul");
  EXPECT_EQ(model.programs[0].regions.size(), 1u);
}

// Also where results are parameters, unchanged or exchanged.
TEST_F(PlaceBodies, SmallBodiesLeaveNothingOnTheDevice) {
  options.islands = false;
  const ValueId x = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(4);
  const ValueId product = emit(*body, MatMulAttrs{}, {body->inputs[2], body->inputs[3]});
  const ValueId sum = emit(*body, AddAttrs{}, {product, body->inputs[4]});
  body->outputs = {yes(*body), body->inputs[2], emit(*body, CopyAttrs{}, {body->inputs[4]}),
                   emit(*body, CopyAttrs{}, {body->inputs[3]}), sum};
  plan(loop(*entry, body, 4, {kAbsent, kAbsent, x, x, x, x}));
  EXPECT_EQ(steps(), "Loop");
  EXPECT_EQ(model.programs[0].regions.size(), 1u);
}

// A step between large bodies does not bring what they exchange to the host.
TEST_F(PlaceBodies, SmallStepsStayBetweenLargeBodies) {
  options.islands = false;
  const ValueId x = input(*entry, DType::kFloat32, {16, 16});
  auto inner = loop_body(1), outer = loop_body(1);
  ValueId v = inner->inputs[2];
  for (int i = 0; i < 100; ++i) v = emit(*inner, MatMulAttrs{}, {v, inner->inputs[2]});
  inner->outputs = {yes(*inner), emit(*inner, ExpAttrs{}, {v})};
  const ValueId before = emit(*outer, ExpAttrs{}, {outer->inputs[2]});
  outer->outputs = {yes(*outer), loop(*outer, inner, 1, {kAbsent, kAbsent, before})[0]};
  plan(loop(*entry, outer, 1, {kAbsent, kAbsent, x}));
  EXPECT_EQ(steps(), ">1 Loop <1");
  EXPECT_EQ(steps(1), "Exp1 Loop");
}

TEST_F(PlaceBodies, LargeBodiesDoNot) {
  options.islands = false;
  const ValueId x = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(1);
  ValueId v = body->inputs[2];
  for (int i = 0; i < 100; ++i) v = emit(*body, MatMulAttrs{}, {v, body->inputs[2]});
  body->outputs = {yes(*body), emit(*body, ExpAttrs{}, {v})};
  plan(loop(*entry, body, 1, {kAbsent, kAbsent, x}));
  EXPECT_EQ(steps(), ">1 Loop <1");
}

TEST_F(PlaceBodies, TheCheckerFindsWhatIsInTheWrongMemory) {
  const ValueId x = input(*entry, DType::kFloat32, {16, 16});
  auto body = loop_body(1);
  body->outputs = {yes(*body), emit(*body, MatMulAttrs{}, {body->inputs[2], body->inputs[2]})};
  plan(loop(*entry, body, 1, {kAbsent, kAbsent, x}));
  ASSERT_EQ(steps(), ">1 Loop <1");
  ASSERT_EQ(check_plan(model), "");
  const auto broken = [&](auto&& change) {
    PlannedModel bad = model;
    change(bad.programs[0], bad.programs[1]);
    return !check_plan(bad).empty();
  };
  using P = PlannedProgram;
  const auto parameter = static_cast<size_t>(model.programs[1].graph->inputs[2]);
  EXPECT_TRUE(broken([&](P&, P& inner) { inner.values[parameter].region = 0; }));
  EXPECT_TRUE(broken([](P&, P& inner) { inner.regions[1].bytes += 64, inner.arena_bytes += 64; }));
  EXPECT_TRUE(broken([](P& outer, P&) { outer.steps[1].device_workspaces.clear(); }));
  EXPECT_TRUE(broken([](P& outer, P&) { outer.steps[1].device_workspaces[0].bytes -= 64; }));
  EXPECT_TRUE(broken([](P& outer, P&) { outer.steps[1].device_workspaces[0].region = 0; }));
  EXPECT_TRUE(broken([](P& outer, P&) { outer.steps[1].device_workspaces[0].region = 2; }));
  EXPECT_TRUE(broken([](P& outer, P&) { outer.steps[1].device_workspaces[0].offset += 64; }));
  EXPECT_TRUE(broken([](P& outer, P&) {
    auto graph = std::make_shared<Graph>(*outer.graph);
    graph->nodes[1].inputs[2] = graph->nodes[0].inputs[0];  // the host's
    outer.graph = graph;
  }));
}

// Any bodies: sound plans (plan_model throws otherwise), and nothing captured is moved in one.
TEST_F(PlaceBodies, RandomBodiesGetSoundPlans) {
  std::minstd_rand random(11);
  size_t on_device = 0, transfers = 0;
  for (int round = 0; round < 200; ++round) {
    taken_there.clear();
    for (const Op op : {Op::kAbs, Op::kAdd, Op::kMatMul, Op::kCopy, Op::kView, Op::kTranspose, Op::kTanh,
                        Op::kSlice, Op::kConcat, Op::kGather, Op::kCompare})
      if (random() % 3 != 0) taken_there.insert(op);
    options.islands = round % 2 == 0, options.thorough = round % 3 == 0, options.overlap = round % 5 == 0;
    entry = RandomBodies(random).make(1 + round % 3);
    plan(entry->outputs);
    for (const PlannedProgram& p : model.programs) {
      for (size_t n = 0; n < p.steps.size(); ++n) {
        const Node& node = p.graph->nodes[n];
        if (!is_transfer(*p.graph, node)) {
          on_device += &p != &model.programs[0] && memory_of(*p.graph, node) > 0;
          continue;
        }
        ++transfers;
        for (size_t i = p.own_inputs; i < p.graph->inputs.size(); ++i)
          EXPECT_NE(node.inputs[0], p.graph->inputs[i]) << "round " << round;
      }
    }
  }
  EXPECT_GT(on_device, 300u);
  EXPECT_GT(transfers, 300u);
}

}  // namespace
}  // namespace sinter::convert
