// The candidates that a step's final place leaves.
#pragma once

#include "converter/plan/planner.h"

namespace sinter::convert {

// Leaves out candidates that a session could not use: those whose workspace found no room, and those that do
// not take the strides that the plan gives a step's operands. The reference kernels, which come last, stay.
void keep_usable_candidates(PlannedProgram& program, const PlanOptions& options);

}  // namespace sinter::convert
