// Ranges clipped by their readers: where only functions read a value, and these are flat (sigmoid, SiLU,
// clamps), the numbers there do not need separate integers.
#pragma once

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

enum class Cut {
  kNone,
  kFlat,   // where the readers do not distinguish the values
  kNoise,  // where the results are expected to have the smallest noise
};

// As if the values had been clipped to the useful range. Also through operations that only move elements.
void cut_to_useful(const Graph& graph, Cut cut, Observations* seen);

}  // namespace sinter::convert
