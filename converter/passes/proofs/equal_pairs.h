// Whether elements along an axis come in pairs of equal ones, as torch.repeat_interleave(x, 2) makes them.
#pragma once

#include "converter/passes/editor.h"

namespace sinter::convert {

// Are elements 2 i and 2 i + 1 along this axis of a value equal, for each i? False: not proven.
bool equal_pairs(Editor& e, ValueId id, size_t axis);

}  // namespace sinter::convert
