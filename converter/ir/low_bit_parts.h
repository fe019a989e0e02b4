// The parts of a constant whose recipe is (q - z) * s, or table[q] * s.
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
  bool written = false;             // a Cast of the model is one reason for rounded_to
  bool divided = false;             // the model subtracts z * s, and z was divided out of it
  // The constant is one DequantizeLinear of these very elements, and casts to rounded_to.
  bool direct = false;
  int64_t block = 0;  // if not 0, the parts are direct, and z and s are [N, blocks of this many columns]
  // The numbers, at most kWeightTableSize, that the integers q index (z is null then); empty: no table.
  std::vector<float> table = {};
  ConstantPtr table_scales = nullptr;  // with a table: s before any move, if known
};

// Returns the readings of the recipe, the most divided first; empty: there is none. The caller checks them,
// because they leave overflow and rounding aside.
std::vector<LowBitParts> low_bit_parts(const ConstantPtr& constant);
// Turns z and s of blocks into one entry for every column. Returns false if that cannot be computed.
bool spread_blocks(LowBitParts& parts);

}  // namespace sinter::convert
