// A branch of an If that does not fit the shapes that the model is converted with: other inputs take it, and
// a run that takes it with these fails.
#pragma once

#include "converter/import/lower/common.h"

namespace sinter::convert {

// Returns whether shapes, counts or indices that disagree are all that was refused of a branch.
bool refused_for_shapes(const Diagnostics& reasons);
// A body whose step fails the run, with the results of `fitting`, the other branch. Its step has the names of
// the If, of `branch` (its attribute) and of the first node that does not fit. Warns of it in `diagnostics`.
LoweredBody unfit_branch(NodeLowering& n, const Graph& fitting, std::string_view branch,
                         const Diagnostics& reasons, Diagnostics& diagnostics);

}  // namespace sinter::convert
