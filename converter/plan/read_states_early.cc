#include "converter/plan/read_states_early.h"

#include <algorithm>
#include <vector>

namespace sinter::convert {
namespace {

// The steps behind `maker` that must come before it: those that read `kept`, or a window of it, and what they
// need. Empty if one of these needs what `maker` makes.
std::vector<size_t> early_steps(const Graph& graph, const Uses& uses, ValueId kept, size_t maker) {
  std::vector<bool> later(graph.values.size()), window(graph.values.size()), chosen(graph.nodes.size());
  for (const ValueId id : graph.nodes[maker].outputs)
    if (id >= 0) later[static_cast<size_t>(id)] = true;
  window[static_cast<size_t>(kept)] = true;
  std::vector<size_t> steps;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    bool reads = false, waits = false;
    for (const ValueId id : node.inputs) {
      if (id < 0) continue;
      reads |= window[static_cast<size_t>(id)];
      waits |= later[static_cast<size_t>(id)];
    }
    const bool moves_nothing = node.op() == Op::kView || node.op() == Op::kSlice || node.op() == Op::kCopy;
    for (const ValueId id : node.outputs) {
      if (id < 0) continue;
      window[static_cast<size_t>(id)] = reads && moves_nothing;
      later[static_cast<size_t>(id)] = later[static_cast<size_t>(id)] || waits;
    }
    if (!reads || n <= maker) continue;
    if (waits) return {};
    steps.push_back(n), chosen[n] = true;
  }
  for (size_t i = 0; i < steps.size(); ++i)
    for (const ValueId id : graph.nodes[steps[i]].inputs) {
      const int from = id >= 0 ? uses.producer[static_cast<size_t>(id)] : -1;
      if (from <= static_cast<int>(maker) || chosen[static_cast<size_t>(from)]) continue;
      chosen[static_cast<size_t>(from)] = true;
      steps.push_back(static_cast<size_t>(from));
    }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

void read_states_early(Graph& graph) {
  for (const GraphState& state : graph.states) {
    const Uses uses(graph);
    const int maker = uses.producer[static_cast<size_t>(graph.outputs[state.output])];
    if (maker < 0) continue;
    const auto at = static_cast<size_t>(maker);
    const std::vector<size_t> early = early_steps(graph, uses, graph.inputs[state.input], at);
    if (early.empty()) continue;
    std::vector<Node> nodes;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (n == at)
        for (const size_t e : early) nodes.push_back(graph.nodes[e]);
      if (!std::binary_search(early.begin(), early.end(), n)) nodes.push_back(std::move(graph.nodes[n]));
    }
    graph.nodes = std::move(nodes);
  }
}

}  // namespace sinter::convert
