// Weights of a product that were computed as (q - z) * s from constants, with q an integer of at most 8 bits,
// or a float of 8 or 4 bits and no z, or as table[q] * s, with z and s the same for whole blocks of a row
// (rule unpack.lowbit).
//
// Any operations of the model may have computed them: the recipe is followed down to the last product and
// difference, and their operands are evaluated, shifts, masks, look-ups and truncating divisions as they are
// written. The parts found are computed again and compared with the constant, element by element.
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
  int64_t block = 0;           // the number of weights that share a scale
  std::vector<int32_t> order;  // empty, or the column of the constant for each column of `weights`
  int64_t padding = 0;   // columns behind the last, multiplied by zeros, so that rows begin at whole bytes
  bool rounded = false;  // the model rounds to float16 or bfloat16 between; these parts do not
  size_t stored_bytes = 0;
};

// Returns the parts of `constant`, which is float32 [N, K] with a recipe; nothing if it has none, or takes
// fewer bytes as it is. `in_planes`: integers of 3, 5 and 6 bits may be used.
std::optional<LowBitWeights> low_bit_weights(const ConstantPtr& constant, bool in_planes = true);

}  // namespace sinter::convert
