// Matrices whose rows or columns are repeated, as those of scales are for the weights of their groups.
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

}  // namespace sinter::convert
