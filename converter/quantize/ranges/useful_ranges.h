// Ranges cut by what follows: where only functions read a value, and these are flat (sigmoid, SiLU, clamps),
// the numbers there need no integers of their own.
#pragma once

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

enum class Cut {
  kNone,
  kFlat,   // where the readers do not distinguish the values
  kNoise,  // where the results are expected to have the smallest noise
};

// As if the values had been cut to what is of use. Through what only moves elements, too.
void cut_to_useful(const Graph& graph, Cut cut, Observations* seen);

}  // namespace sinter::convert
