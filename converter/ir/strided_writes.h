// Constants that are written into every n-th place of another, as `places[::2] = packed >> 4` is exported.
// What is written in turn is joined, so that the places are never in memory as a whole.
#pragma once

#include "converter/ir/constant.h"

namespace sinter::convert {

inline constexpr int64_t kMostStrides = 16;

// `data` with `updates` [rows, ...] in its rows first, first + n, ..., down to the last one, which `indices`
// [rows] or [rows, 1] are, with n at most kMostStrides. Large ones are computed when they are read. null: the
// indices are others.
ConstantPtr with_strided_rows(const ConstantPtr& data, const ConstantPtr& indices,
                              const ConstantPtr& updates);

}  // namespace sinter::convert
