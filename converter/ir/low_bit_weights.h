// Weights of a product that were computed as (q - z) * s from constants, with q an integer of at most 8 bits,
// or a float of 8 or 4 bits and no z, or as table[q] * s, with z and s the same for whole blocks of a row
// (rule unpack.lowbit).
//
// What the model computed them with does not matter: the recipe is followed down to the last product and
// difference, and their operands are evaluated, shifts, masks, look-ups and truncating divisions as they are
// written. What was found is computed again and compared with the constant, element by element.
#pragma once

#include <optional>
#include <vector>

#include "converter/ir/constant.h"
#include "runtime/core/weight_format.h"

namespace sinter::convert {

// The constants of a LowBitMatrix (runtime/backend/low_bit_matrix.h).
struct LowBitWeights {
  WeightFormat format;
  ConstantPtr weights;         // [N, elements of K + padding codes]
  ConstantPtr scales;          // [N, blocks] float32
  ConstantPtr zeros;           // null, or [N, blocks] of the weights' type or float32
  ConstantPtr table;           // null, or float32 [kWeightTableSize]
  int64_t block = 0;           // weights that share a scale
  std::vector<int32_t> order;  // empty, or which column of the constant each of `weights` is
  int64_t padding = 0;   // columns behind the last, to be multiplied by zeros: rows begin at whole bytes
  bool rounded = false;  // the model rounds to float16 or bfloat16 between; this does not
  size_t stored_bytes = 0;
};

// `constant`: [N, K], float32, with a recipe. `in_planes`: integers of 3, 5 and 6 bits may be used. nullopt:
// it is something else, or takes less room as it is.
std::optional<LowBitWeights> low_bit_weights(const ConstantPtr& constant, bool in_planes = true);

}  // namespace sinter::convert
