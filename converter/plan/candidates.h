// The candidates of a step: the platforms that may compute it, the best first by memory, then by the times
// that they list.
#pragma once

#include <vector>

#include "converter/plan/planner.h"
#include "runtime/backend/platform.h"

namespace sinter::convert {

// Returns Platform::kept_bytes.
size_t kept_bytes(const Platform& platform, const OpCall& call);

// Returns whether `a` is preferred to `b` for a call that both take: it alone uses Winograd's algorithm, and
// the call permits that; or it alone reads large weights where they are; or by memory; or else both list a
// time for the call, and that of `a` is lower.
bool is_preferred(const Platform& a, const Platform& b, Cpu cpu, const OpCall& call, Preference preference);

// A platform that takes a call, as an index, with the workspace for `threads` of them.
struct Accepted {
  size_t platform = 0, workspace = 0;
};
// Returns the platforms that take a call, the best first.
std::vector<Accepted> accepted_by(const PlanOptions& options, const OpCall& call, int threads);

// Returns a step without bodies, with its candidates and their workspaces.
PlannedStep step_of(const Graph& graph, const Node& node, const PlanOptions& options);

// Leaves out candidates that a session could not use: those whose workspace found no room, and those that do
// not take the strides that the plan gives a step's operands. The reference kernels, which come last, stay.
void keep_usable_candidates(PlannedProgram& program, const PlanOptions& options);

// Puts a platform first among the candidates of an element-wise step if it computes that step piece by piece
// with the step right before it (Platform::fuses), of which it is the first candidate. So does it for two
// element-wise steps in a row, whichever candidate was first. Called when steps are in order and in place.
void prefer_fused(PlannedProgram& program, const PlanOptions& options);

}  // namespace sinter::convert
