// Workspaces for the candidates behind the first, in what the other values leave free.
#pragma once

#include "converter/plan/planner.h"

namespace sinter::convert {

// A step is planned with the workspace of its first candidate. Those behind it may want more: for all threads
// or at least for one. Gives every step of a placed program as much of that as fits beside what lives in it.
// Moves nothing else, and no region grows.
void grow_workspaces(PlannedProgram& program, const PlanOptions& options);

}  // namespace sinter::convert
