// What a constant's recipe says about it as (q - z) * s.
#pragma once

#include <vector>

#include "converter/ir/constant.h"

namespace sinter::convert {

struct LowBitParts {
  ConstantPtr q;                    // integers
  ConstantPtr z, s;                 // null: 0 and 1. All broadcast to the constant's dims.
  DType rounded_to = DType::kNone;  // the coarsest narrow float type in which the model computed between
  bool written = false;             // ... and a Cast of the model is one reason for it
  bool divided = false;             // the model subtracts z * s, and z was divided out of it
};

// Readings of the recipe, the most divided first; empty: there is none. What they say is to be checked: they
// leave overflow and rounding aside.
std::vector<LowBitParts> low_bit_parts(const ConstantPtr& constant);

}  // namespace sinter::convert
