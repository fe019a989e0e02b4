// The check of types finds graphs that a pass could leave behind, and accepts what is right.
#include "converter/types/type_faults.h"

#include <gmock/gmock.h>

#include "tests/unit/evaluate_graph.h"

namespace sinter::convert::testing {
namespace {

using ::testing::HasSubstr;

ValueId cast(Sketch& s, ValueId id, DType to) { return s.emit(CastAttrs{static_cast<int64_t>(to), 1}, {id}); }

// x -> Cast to `type` -> Add with itself -> Cast to float32, all casts the model's.
Sketch sum_in(DType type) {
  Sketch s;
  advance(s.graph, Stage::kRewritten);
  const ValueId x = cast(s, s.input({4}), type);
  s.output(cast(s, s.emit(AddAttrs{}, {x, x}), DType::kFloat32));
  for (Node& node : s.graph.nodes)
    node.name = "n" + std::string(op_name(node.op())), node.origin = op_name(node.op());
  return s;
}
Value& sum_of(Graph& graph) { return graph.value(graph.nodes[1].outputs[0]); }

TEST(CheckTypes, AcceptsWhatTheModelHas) {
  for (const DType type : {DType::kFloat64, DType::kInt32, DType::kInt64})
    EXPECT_EQ(type_fault(sum_in(type).graph), "") << dtype_name(type);
}

TEST(CheckTypes, FindsAnOperandOfAnotherType) {
  Sketch s = sum_in(DType::kInt32);
  s.graph.nodes[1].inputs[1] = s.graph.inputs[0];
  EXPECT_THAT(type_fault(s.graph), HasSubstr("nAdd"));
}

TEST(CheckTypes, FindsAResultOfAnotherType) {
  Sketch s = sum_in(DType::kInt32);
  sum_of(s.graph).dtype = DType::kInt64;
  EXPECT_THAT(type_fault(s.graph), HasSubstr("nAdd"));
}

TEST(CheckTypes, FindsNarrowComputationThatNobodyRequested) {
  for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
    Sketch s = sum_in(type);
    EXPECT_THAT(type_fault(s.graph), HasSubstr("computes in")) << dtype_name(type);
    sum_of(s.graph).requested = true;
    EXPECT_EQ(type_fault(s.graph), "") << dtype_name(type);
  }
}

TEST(CheckTypes, FindsACastWithoutAnEntry) {
  Sketch s = sum_in(DType::kInt32);
  s.graph.nodes[0].origin = "Add";
  EXPECT_THAT(type_fault(s.graph), HasSubstr("has no entry"));
  s.graph.ledger->add({"",
                       "nCast",
                       "Add",
                       DType::kFloat32,
                       DType::kInt32,
                       TypeRule::kOpCompute,
                       "why",
                       TypeEffect::kCast,
                       {}});
  EXPECT_EQ(type_fault(s.graph), "");
}

// In a branch as well as outside of one.
TEST(CheckTypes, FindsFaultsInBodies) {
  Sketch s;
  const ValueId condition = s.graph.add_value("c", DType::kBool, {});
  s.graph.inputs.push_back(condition);
  const ValueId y = s.graph.add_value("y", DType::kFloat32, {4});
  const ValueId x = s.input({4});
  const auto body = std::make_shared<Graph>(sum_in(DType::kInt32).graph);
  sum_of(*body).dtype = DType::kInt64;
  s.graph.nodes.push_back({IfAttrs{}, {condition, x}, {y}, "choice", "If", {body, body}});
  s.graph.outputs.push_back(y);
  EXPECT_THAT(type_fault(s.graph), HasSubstr("choice"));
}

}  // namespace
}  // namespace sinter::convert::testing
