// Products of a few rows of x with an expert's rows of 16-bit weights, which are widened in registers.
#pragma once

#include <cstdint>

#include "platforms/simd/low_bit.h"

namespace sinter::simd {

// y[r][n] = bias[n] + x[r] . weights row n, for `rows` rows, 1 to kLowBitRows.
struct HalfRows {
  const uint16_t* weights = nullptr;  // [columns, depth], the bits of float16, else bfloat16
  bool is_float16 = false;
  const float* bias = nullptr;  // null: none
  const float* x[kLowBitRows] = {};
  float* y[kLowBitRows] = {};
  int64_t rows = 0, depth = 0;
};

}  // namespace sinter::simd
