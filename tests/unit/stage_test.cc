// A graph holds nothing that belongs to a later stage, and does not go back.
#include <gmock/gmock.h>

#include "converter/passes/pass.h"
#include "converter/plan/planner.h"
#include "tests/unit/evaluate_graph.h"

namespace sinter::convert::testing {
namespace {

using ::testing::HasSubstr;

Sketch sum() {
  Sketch s;
  const ValueId x = s.input({2, 3});
  s.output(s.emit(AddAttrs{}, {x, x}));
  return s;
}

TEST(Stage, EachHoldsWhatTheStagesBeforeMayNot) {
  const std::pair<Stage, std::function<void(Graph&)>> firsts[] = {
      {Stage::kRewritten,
       [](Graph& g) {
         g.values[0].order = {1, 0};
       }},
      {Stage::kRewritten, [](Graph& g) { g.values[0].requested = true; }},
      {Stage::kPlanned, [](Graph& g) { g.values[0].memory = 1; }},
      {Stage::kPlanned, [](Graph& g) { g.prepare.push_back(g.nodes[0]); }},
  };
  for (const auto& [first, change] : firsts)
    for (const Stage stage : {Stage::kLowered, Stage::kRewritten, Stage::kPlanned}) {
      Graph graph = sum().graph;
      advance(graph, stage);
      ASSERT_EQ(check(graph), "");
      change(graph);
      if (stage < first) {
        EXPECT_THAT(check(graph), HasSubstr(std::string("but the graph is ") + stage_name(stage)));
      } else {
        EXPECT_EQ(check(graph), "") << stage_name(stage);
      }
    }
}

TEST(Stage, PassesRewriteALoweredGraphOnce) {
  Graph graph = sum().graph;
  run_passes(graph, {});
  EXPECT_EQ(graph.stage, Stage::kRewritten);
  EXPECT_THROW(run_passes(graph, {}), std::logic_error);
}

TEST(Stage, APlannedGraphIsNotRewrittenOrPlannedAgain) {
  const auto graph = std::make_shared<Graph>(sum().graph);
  plan_model(graph, {});
  EXPECT_EQ(graph->stage, Stage::kPlanned);
  EXPECT_THROW(run_pass(*graph, "simplify"), std::logic_error);
  EXPECT_THROW(plan_model(graph, {}), std::logic_error);
  EXPECT_THROW(advance(*graph, Stage::kLowered), std::logic_error);
}

TEST(Stage, ABodyIsWhereTheGraphAroundItIs) {
  Graph graph = sum().graph;
  graph.nodes[0].bodies.push_back(std::make_shared<Graph>());
  advance(*graph.nodes[0].bodies[0], Stage::kRewritten);
  EXPECT_THAT(check(graph), HasSubstr("the graph around it is lowered"));
}

}  // namespace
}  // namespace sinter::convert::testing
