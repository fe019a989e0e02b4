// The states of several shape sets in one file: sessions of the sets share the memory of the state, so that
// one goes on where another one stopped (docs/shapes.md). Every set's plan has each state at the same place.
#pragma once

#include <span>
#include <string>

#include "converter/plan/planned_model.h"

namespace sinter::convert {

// Moves the blocks that hold state to the same places in all plans: of one target, of graphs with the same
// states. Nothing changes where there is one plan, or no state. Returns why that is impossible, with the
// state's name, or "".
std::string give_states_common_places(std::span<PlannedModel> sets);

}  // namespace sinter::convert
