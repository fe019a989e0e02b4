// Inputs for running a model without data.
#pragma once

#include "converter/import/read/arrays.h"
#include "sinter/model.h"

namespace sinter::convert {

// Returns small numbers that are the same in every run: floats, and numbers for int8 with a scale, within
// +-1, integers and booleans of 0 and 1 (valid as indices).
Arrays made_up_inputs(const Model& model, uint32_t entry = 0);
// Returns arrays for the model's inputs, on every machine the same for a seed: floats, and numbers for int8
// with a scale, evenly distributed from -1 to 1, bytes (uint8) from 0 to 255, other integers 0 or 1.
Arrays random_inputs(const Model& model, uint64_t seed, uint32_t entry = 0);

}  // namespace sinter::convert
