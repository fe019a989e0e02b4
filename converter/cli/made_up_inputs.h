// Inputs for measuring a model without data.
#pragma once

#include "converter/import/arrays.h"
#include "sinter/model.h"

namespace sinter::convert {

// Small numbers that are the same in every run: floats within +-1, integers and booleans of 0 and 1 (valid as
// indices).
Arrays made_up_inputs(const Model& model);

}  // namespace sinter::convert
