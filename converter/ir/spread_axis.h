// Matrices whose rows or columns are repeated, as those of scales are for the weights of their groups. The
// walk goes through recipes of constants and looks for one of two forms, so that it needs no map of elements.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "converter/ir/constant.h"

namespace sinter::convert {

// Entry i along the axis is entry index[i] of the table; along the other axis both are alike.
struct SpreadAxis {
  ConstantPtr table;
  std::vector<int64_t> index;
};

// What a constant [N, K] was spread from along `axis` by a Gather or GatherNd, and was turned or cast at most
// since then; nullopt: it was computed in another way.
std::optional<SpreadAxis> spread_along(const ConstantPtr& constant, size_t axis);

// Of a constant with dims [N, K], what every `block` elements of a row share.
struct RowBlocks {
  ConstantPtr table;  // [N, K / block]
  int64_t block = 0;
};

// nullopt: it was not computed as one number for each of its blocks [..., 1], broadcast to [..., block], and
// seen as [N, K], or it was cast since then.
std::optional<RowBlocks> blocks_along_rows(const ConstantPtr& constant, const Dims& dims);

}  // namespace sinter::convert
