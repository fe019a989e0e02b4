// From a program's blocks to addresses: the regions, and the place of every value and workspace in them.
#pragma once

#include "converter/plan/offsets.h"
#include "converter/plan/planned_model.h"

namespace sinter::convert {

// Given are the steps with their workspaces, and the values with their live ranges, bytes, the values that
// they are placed on (alias_of) and their distances from one another as differences of offsets. Sets regions,
// the offsets in them, and the sums. May be called again, with options that find more.
void assign_region_offsets(PlannedProgram& program, const OffsetOptions& options);

}  // namespace sinter::convert
