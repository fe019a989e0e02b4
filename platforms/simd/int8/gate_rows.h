// The products of QLstm and QGru.
#pragma once

#include "platforms/simd/int8/int8.h"

namespace sinter::simd {

// Rows of int8 that are multiplied by one vector, which gives what flows into gates.
struct GateRows {
  const int8_t* weights;  // [count, depth]
  int64_t count, depth;
  const float *multipliers, *bias;  // [count]
};

}  // namespace sinter::simd
