#include "converter/plan/usable_candidates.h"

#include <algorithm>

#include "converter/ir/call_view.h"

namespace sinter::convert {
namespace {

bool has_strides(const Node& node, const PlacedStrides& placed) {
  const auto strided = [&](ValueId id) { return id >= 0 && !placed.strides(id).empty(); };
  return std::ranges::any_of(node.inputs, strided) || std::ranges::any_of(node.outputs, strided);
}

bool takes_operands(const PlanOptions& options, uint8_t candidate, const OpCall& call) {
  size_t workspace = 0;
  return candidate >= options.platforms.size() ||  // the reference kernels
         options.platforms[candidate]->accept(options.target, call, 1, &workspace).ok();
}

}  // namespace

void keep_usable_candidates(PlannedProgram& program, const PlanOptions& options) {
  const PlacedStrides placed{program.values};
  for (size_t n = 0; n < program.steps.size(); ++n) {
    PlannedStep& step = program.steps[n];
    if (step.needs.empty()) continue;
    const Node& node = program.graph->nodes[n];
    const bool strided = !step.elided && has_strides(node, placed);
    std::vector<uint8_t> kept;
    for (size_t i = 0; i < step.needs.size(); ++i)
      if (step.needs[i] <= step.workspace_bytes &&
          (!strided ||
           takes_operands(options, step.candidates[i], CallView(*program.graph, node, placed).call)))
        kept.push_back(step.candidates[i]);
    step.candidates = std::move(kept);
  }
}

}  // namespace sinter::convert
