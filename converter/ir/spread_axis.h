// Matrices whose rows or columns are repeated, as those of scales are for the weights of their groups. The
// walk goes through recipes of constants and looks for one of two forms, so that it needs no map of elements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "converter/ir/constant.h"

namespace sinter::convert {

// SpreadAxis is a matrix whose entry i along an axis is entry index[i] of a table; along the other axis both
// are alike.
struct SpreadAxis {
  ConstantPtr table;
  std::vector<int64_t> index;
};

// Returns what a constant [N, K] was spread from along `axis` by a Gather or GatherNd, and was turned or cast
// at most since then; nullopt: it was computed in another way.
std::optional<SpreadAxis> spread_along(const ConstantPtr& constant, size_t axis);

// RowBlocks is what every `block` elements of a row of a constant [N, K] share.
struct RowBlocks {
  ConstantPtr table;  // [N, K / block]
  int64_t block = 0;
};

// Returns the blocks of a constant; nullopt: it was not computed as one number for each of its blocks [...,
// 1], broadcast to [..., block], and seen as [N, K], or it was cast since then.
std::optional<RowBlocks> blocks_along_rows(const ConstantPtr& constant, const Dims& dims);

}  // namespace sinter::convert
