#include "converter/plan/prefer_fused.h"

#include <algorithm>

#include "converter/ir/call_view.h"
#include "converter/ir/op_traits.h"

namespace sinter::convert {
namespace {

bool reads(const Node& node, ValueId id) { return std::ranges::find(node.inputs, id) != node.inputs.end(); }

bool put_first(std::vector<uint8_t>& candidates, uint8_t platform) {
  const auto at = std::ranges::find(candidates, platform);
  if (at == candidates.end()) return false;
  std::rotate(candidates.begin(), at, at + 1);
  return true;
}

}  // namespace

void prefer_fused(PlannedProgram& program, const PlanOptions& options) {
  const Graph& graph = *program.graph;
  const PlacedStrides placed{program.values};
  int before = -1;
  for (size_t n = 0; n < program.steps.size(); ++n) {
    PlannedStep& step = program.steps[n];
    if (step.elided) continue;
    const int first = std::exchange(before, static_cast<int>(n));
    const Node& node = graph.nodes[n];
    if (first < 0 || !is_elementwise(node.op())) continue;
    const Node& other = graph.nodes[static_cast<size_t>(first)];
    PlannedStep& other_step = program.steps[static_cast<size_t>(first)];
    if (!reads(node, other.outputs[0])) continue;
    const CallView call(graph, node, placed), other_call(graph, other, placed);
    for (const uint8_t p : step.candidates) {
      if (p >= options.platforms.size() || options.platforms[p]->fuses == nullptr ||
          !options.platforms[p]->fuses(other_call.call, call.call))
        continue;
      const bool computes = other_step.candidates.front() == p ||
                            (is_elementwise(other.op()) && put_first(other_step.candidates, p));
      if (!computes) continue;
      put_first(step.candidates, p);
      break;
    }
  }
}

}  // namespace sinter::convert
