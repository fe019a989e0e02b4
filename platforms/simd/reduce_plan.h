// A reduction over neighbouring axes as x [outer, length, inner], along the middle.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

struct ReducePlan {
  int64_t outer = 1, length = 1, inner = 1;
};

// Returns false if other axes are between the reduced ones.
inline bool reduce_plan(const TensorView& x, const IntList& axes, ReducePlan* p) {
  uint32_t reduced = 0;
  for (const int64_t axis : axes) reduced |= 1u << axis;
  int stage = 0;  // of outer, length, inner
  for (int i = 0; i < x.rank; ++i) {
    if (x.dims[i] == 1) continue;
    const bool folded = (reduced >> i & 1) != 0;
    if (folded && stage == 0) stage = 1;
    if (!folded && stage == 1) stage = 2;
    if (folded && stage == 2) return false;
    (stage == 0 ? p->outer : stage == 1 ? p->length : p->inner) *= x.dims[i];
  }
  return true;
}

}  // namespace sinter::simd
