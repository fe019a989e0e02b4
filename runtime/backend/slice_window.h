// The elements that a Slice reads.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter {

// Returns the view of operand 0 whose elements are those of result 0, in its order. The call is valid and its
// result is not empty.
inline TensorView slice_window(const OpCall& call) {
  const auto& a = call.attrs<SliceAttrs>();
  const TensorView& x = call.in(0);
  TensorView window = call.out(0);
  window.data = x.data;
  for (int i = 0; i < x.rank; ++i) {
    window.data += a.starts[i] * x.strides[i];
    window.strides[i] = a.sizes[i] > 1 ? a.steps[i] * x.strides[i] : 0;
  }
  return window;
}

}  // namespace sinter
