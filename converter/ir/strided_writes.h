// Constants that are written into parts of another, as `places[::2] = packed >> 4` or `places[:n] = packed >>
// 4` is exported. What is written in turn is joined, so that the places are never in memory as a whole.
#pragma once

#include "converter/ir/constant.h"

namespace sinter::convert {

inline constexpr int64_t kMostParts = 16;

// Returns `data`, one of whose n parts of equal size is `updates` [rows, ...], where `indices` [rows] or
// [rows, 1] are every n-th row or a run of rows that begins at a multiple of its length, and n is at most
// kMostParts. Large ones are computed when they are read. null: the indices are others.
ConstantPtr with_rows(const ConstantPtr& data, const ConstantPtr& indices, const ConstantPtr& updates);

}  // namespace sinter::convert
