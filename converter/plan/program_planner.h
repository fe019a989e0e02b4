// Memory of one program whose steps are chosen and in order: which values share memory, then offsets.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/plan/elide.h"
#include "converter/plan/planned_model.h"

namespace sinter::convert {

// Fills values, offsets and what follows from them; graph, own_inputs and steps are given. `held`: values
// that live until the end besides the graph's outputs. Results are placed partly over operand 0 in steps
// where otherwise more than `enough` bytes are live. `effort`: of the search for offsets; 0: greedy only.
// `states_first`: the updates of states have precedence over other results in the states' memory.
void plan_memory(PlannedProgram& program, Storage storage, const std::vector<ValueId>& held, double effort,
                 uint64_t enough, bool states_first);

}  // namespace sinter::convert
