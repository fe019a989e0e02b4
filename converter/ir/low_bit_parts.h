// A constant's recipe read as (q - z) * s, or as table[q] * s.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/ir/constant.h"
#include "runtime/core/weight_format.h"

namespace sinter::convert {

struct LowBitParts {
  ConstantPtr q;                    // integers, or floats of 8 or 4 bits
  ConstantPtr z, s;                 // null: 0 and 1. All broadcast to the constant's dims.
  DType rounded_to = DType::kNone;  // the coarsest narrow float type in which the model computed between
  bool written = false;             // ... and a Cast of the model is one reason for it
  bool divided = false;             // the model subtracts z * s, and z was divided out of it
  // The constant is (q - z) * s of these very elements, rounded to rounded_to: one DequantizeLinear, and
  // casts.
  bool direct = false;
  int64_t block = 0;  // of a direct one, if not 0: z and s are [N, blocks of this many columns]
  // If not empty: the numbers, at most kWeightTableSize, which the integers q index. z is null.
  std::vector<float> table = {};
  ConstantPtr table_scales = nullptr;  // then: s before anything moved it, if known
};

// Readings of the recipe, the most divided first; empty: there is none. They are to be checked: they leave
// overflow and rounding aside.
std::vector<LowBitParts> low_bit_parts(const ConstantPtr& constant);
// The same with one entry of z and s for every column, if they are of blocks. False: that cannot be computed.
bool spread_blocks(LowBitParts& parts);

}  // namespace sinter::convert
