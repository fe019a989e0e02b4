// The search for an order of steps, against all orders of small graphs.
#include "converter/plan/step_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "converter/ir/builder.h"
#include "converter/plan/planner.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

ValueId emit(Graph& graph, OpAttrs attrs, std::vector<ValueId> operands) {
  Builder builder(graph);
  std::vector<ValueId> out;
  EXPECT_TRUE(builder.emit(std::move(attrs), std::move(operands), 1, &out).ok());
  return out[0];
}

// Unary steps that keep, widen (Tile) or narrow (Reduce) a row, and sums of two results.
std::shared_ptr<Graph> random_graph(uint32_t seed, int steps) {
  std::minstd_rand random(seed);
  auto graph = std::make_shared<Graph>();
  std::vector<ValueId> made{graph->add_value("x", DType::kFloat32, {1, 64})};
  graph->inputs = {made[0]};
  for (int i = 0; i < steps; ++i) {
    const ValueId a = made[random() % made.size()], b = made[random() % made.size()];
    switch (random() % 5) {
      case 0:
        made.push_back(emit(*graph, TileAttrs{IntList{1, static_cast<int64_t>(1 + random() % 4)}}, {a}));
        break;
      case 1:
        made.push_back(emit(*graph, ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), IntList{1}, 1}, {a}));
        break;
      case 2:
        made.push_back(emit(*graph, ConcatAttrs{0}, {a, b == a ? emit(*graph, NegAttrs{}, {a}) : a}));
        if (graph->value(made.back()).dims[0] > 2)
          made.pop_back(), made.push_back(emit(*graph, AbsAttrs{}, {a}));
        break;
      case 3:
        if (graph->value(a).dims == graph->value(b).dims) {
          made.push_back(emit(*graph, AddAttrs{}, {a, b}));
          break;
        }
        [[fallthrough]];
      default:
        made.push_back(emit(*graph, ExpAttrs{}, {a}));
    }
  }
  // Values without readers are outputs.
  const Uses uses(*graph);
  for (size_t v = 1; v < graph->values.size(); ++v)
    if (uses.readers[v].empty()) graph->outputs.push_back(static_cast<ValueId>(v));
  return graph;
}

uint64_t peak_in_order(const Graph& graph, const std::vector<size_t>& order) {
  auto copy = std::make_shared<Graph>(graph);
  copy->nodes.clear();
  for (const size_t n : order) copy->nodes.push_back(graph.nodes[n]);
  return given_order_peak(*copy, Storage(*copy, copy->inputs.size()), std::vector<StepMemory>(order.size()),
                          {});
}

void every_order(const Graph& graph, std::vector<size_t>& taken, std::vector<bool>& done,
                 const std::vector<std::vector<size_t>>& needs, uint64_t* least) {
  if (taken.size() == graph.nodes.size()) {
    *least = std::min(*least, peak_in_order(graph, taken));
    return;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (done[n] || !std::all_of(needs[n].begin(), needs[n].end(), [&](size_t p) { return done[p]; }))
      continue;
    done[n] = true, taken.push_back(n);
    every_order(graph, taken, done, needs, least);
    done[n] = false, taken.pop_back();
  }
}

TEST(StepOrder, NoOtherOrderOfASmallGraphIsBetter) {
  int improved = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    const auto graph = random_graph(seed, 6);
    const size_t count = graph->nodes.size();
    if (count > 7) continue;
    const Storage storage(*graph, 1);
    const StepOrder found = find_step_order(*graph, storage, std::vector<StepMemory>(count), {});
    ASSERT_TRUE(found.proved);
    std::vector<size_t> sorted = found.nodes, taken;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(sorted[i], i);
    const Uses uses(*graph);
    std::vector<std::vector<size_t>> needs(count);
    for (size_t n = 0; n < count; ++n)
      for (const ValueId v : graph->nodes[n].inputs)
        if (uses.producer[static_cast<size_t>(v)] >= 0)
          needs[n].push_back(static_cast<size_t>(uses.producer[static_cast<size_t>(v)]));
    std::vector<bool> done(count);
    uint64_t least = UINT64_MAX;
    every_order(*graph, taken, done, needs, &least);
    EXPECT_EQ(found.peak, least) << "seed " << seed;
    improved += !std::is_sorted(found.nodes.begin(), found.nodes.end());
  }
  EXPECT_GT(improved, 3);
}

// Two branches that widen, one after the other and both at once.
TEST(StepOrder, ABranchIsFinishedBeforeTheNextBegins) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->add_value("x", DType::kFloat32, {1, 64});
  graph->inputs = {x};
  const auto wide = [&] { return emit(*graph, TileAttrs{IntList{1, 16}}, {x}); };
  const auto sum = [&](ValueId v) {
    return emit(*graph, ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), IntList{1}, 1}, {v});
  };
  const ValueId a = wide(), b = wide();
  const ValueId c = sum(a), d = sum(b);
  graph->outputs = {c, d};
  PlanOptions reordering;
  reordering.thorough = true;
  const PlannedProgram given = plan_model(std::make_shared<Graph>(*graph), {}).programs[0];
  const PlannedProgram better = plan_model(std::make_shared<Graph>(*graph), reordering).programs[0];
  EXPECT_EQ(given.arena_bytes, 256 + 2 * 4096 + kReadPadding);
  EXPECT_EQ(better.arena_bytes, 256 + 4096 + 64 + kReadPadding);
  EXPECT_EQ(better.given_order_bytes, given.arena_bytes);
  EXPECT_TRUE(better.order_proved);
}

TEST(StepOrder, TheGivenOrderStaysWhereNoneIsBetter) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const auto graph = random_graph(seed, 12);
    const Storage storage(*graph, 1);
    const StepOrder found =
        find_step_order(*graph, storage, std::vector<StepMemory>(graph->nodes.size()), {});
    auto copy = std::make_shared<Graph>(*graph);
    copy->nodes.clear();
    for (const size_t n : found.nodes) copy->nodes.push_back(graph->nodes[n]);
    ASSERT_EQ(check(*copy), "");
    const Storage again(*copy, 1);
    const StepOrder second = find_step_order(*copy, again, std::vector<StepMemory>(graph->nodes.size()), {});
    EXPECT_TRUE(std::is_sorted(second.nodes.begin(), second.nodes.end()));
    EXPECT_EQ(second.peak, found.peak);
  }
}

// A hundred equal branches: no end of orders, but an end of the search.
TEST(StepOrder, WideGraphsEndWithinTheBudget) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->add_value("x", DType::kFloat32, {1, 64});
  graph->inputs = {x};
  for (int i = 0; i < 100; ++i)
    graph->outputs.push_back(emit(*graph, ReduceAttrs{static_cast<int64_t>(ReduceFn::kSum), IntList{1}, 1},
                                  {emit(*graph, TileAttrs{IntList{1, 2 + i % 7}}, {x})}));
  std::stable_partition(graph->nodes.begin(), graph->nodes.end(),
                        [](const Node& n) { return n.op() == Op::kTile; });
  const Storage storage(*graph, 1);
  const StepOrder found = find_step_order(*graph, storage, std::vector<StepMemory>(graph->nodes.size()), {});
  EXPECT_LT(found.peak, uint64_t{256 + 8 * 256 + 100 * 4 + 1});
}

}  // namespace
}  // namespace sinter::convert
