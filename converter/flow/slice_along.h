// The attributes of a Slice along one axis.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Returns the Slice of `count` entries first, first + step, ... along an axis of a value with these dims.
inline SliceAttrs slice_along(const Dims& dims, size_t axis, int64_t first, int64_t count, int64_t step = 1) {
  SliceAttrs slice;
  for (size_t i = 0; i < dims.size(); ++i) {
    slice.starts.push(i == axis ? first : 0);
    slice.steps.push(i == axis ? step : 1);
    slice.sizes.push(i == axis ? count : dims[i]);
  }
  return slice;
}

}  // namespace sinter::convert
