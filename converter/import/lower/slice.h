// Common parts of Slice and its form whose start is computed at run time.
#pragma once

#include "converter/import/lowering.h"

namespace sinter::convert {

// Slice's start, end and step along an axis of `dim` elements, as ONNX clamps them. step is not 0.
struct SliceRange {
  int64_t begin = 0, count = 0, step = 1;
};
SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t dim);

// The distance of each end of the node's Slice from its start, where that is computed at run time and the
// end is that start plus a constant; -1 elsewhere. Empty: starts and ends are not of that kind.
std::vector<int64_t> running_extents(NodeLowering& n);

}  // namespace sinter::convert
