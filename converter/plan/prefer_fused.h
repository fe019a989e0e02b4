// Kernels that compute a step together with the one before it.
#pragma once

#include "converter/plan/planner.h"

namespace sinter::convert {

// Puts a platform first among the candidates of an element-wise step if it computes that step piece by piece
// with the step right before it (Platform::fuses), of which it is the first candidate. So does it for two
// element-wise steps in a row, whichever candidate was first. Called when steps are in order and in place.
void prefer_fused(PlannedProgram& program, const PlanOptions& options);

}  // namespace sinter::convert
