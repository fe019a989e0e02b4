// What Slice shares with its form whose start is known only while running.
#pragma once

#include "converter/import/lowering.h"

namespace sinter::convert {

// Slice's start, end and step along an axis of `dim` elements, as ONNX clamps them. step is not 0.
struct SliceRange {
  int64_t begin = 0, count = 0, step = 1;
};
SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t dim);

// The node's Slice, if some starts are computed while running but every size is known: ends are then starts
// plus a constant. Such elements are gathered; where less than that size is left, the run fails. kAbsent:
// some size is not known. kUnknown: refused.
ValueId running_slice(NodeLowering& n);

}  // namespace sinter::convert
