// Elements phase, phase + period, phase + 2 period, ... of a value in row-major order, as a text that
// identifies their source: equal texts are equal numbers in every run. Nothing follows from unequal ones.
#pragma once

#include <string>

#include "converter/passes/editor.h"

namespace sinter::convert {

// Of the numbers times -1 if `negated`. The value's size must be a multiple of the period.
std::string periodic(Editor& e, ValueId id, int64_t period, int64_t phase, bool negated);

}  // namespace sinter::convert
