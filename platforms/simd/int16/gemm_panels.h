// Products of int16 rows by panels of packed int8 weights, with the results of docs/numerics.md. They are for
// x86; other processors multiply rows by rows (gemm.cc).
#pragma once

#include "platforms/simd/int8/int8.h"

namespace sinter::simd {

// The packed weights of one group: panels of pairs of depths, then the numbers of each column.
struct Q16Packed {
  int64_t columns = 0, depth = 0;  // depth: even
  int8_t* panels = nullptr;        // [panel][depth / 2][column][2]
  int64_t* bias = nullptr;
  float* multipliers = nullptr;
  int32_t* narrow = nullptr;  // for each panel: whether int32 holds any sum of its columns
};
// The operands of `count` rows, `stride` apart, whose results are `y_stride` apart. A row is `lines` lines,
// `line_step` apart, of `line` numbers (even): as many as the packed weights are deep.
struct Q16Rows {
  const int16_t* x = nullptr;
  int64_t count = 0, stride = 0, y_stride = 0, lines = 0, line = 0, line_step = 0;
};

// Returns whether the instruction set in use multiplies by packed panels.
bool q16_multiplies_panels();
int64_t q16_panel_width();
// Multiplies panels first .. end - 1. Row r, column c is stored at result.y[r * y_stride + c].
void multiply_q16(const Q16Packed& w, const Q16Rows& rows, int64_t first_panel, int64_t end_panel,
                  const ProductResult& result);

}  // namespace sinter::simd
