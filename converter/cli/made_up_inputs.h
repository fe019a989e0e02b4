// Inputs for running a model without data.
#pragma once

#include "converter/import/read/arrays.h"
#include "sinter/model.h"

namespace sinter::convert {

// Returns small numbers that are the same in every run: floats, and numbers for int8 with a scale, within
// +-1, integers and booleans of 0 and 1 (valid as indices).
Arrays made_up_inputs(const Model& model, uint32_t entry = 0);
// Returns arrays of the types and shapes of the model's inputs: floats, and numbers for int8 with a scale,
// evenly distributed from -1 to 1, bytes (uint8) from 0 to 255, other integers and booleans 0 or 1. The same
// seed gives the same arrays on every machine.
Arrays random_inputs(const Model& model, uint64_t seed, uint32_t entry = 0);

}  // namespace sinter::convert
