// A float32 product y = a * b + bias, clamped, for MatMul, FullyConnected and Conv.
//
// b is packed into panels of panel_width() columns (or read in place, if it is used too little to pay for
// that), a is read in place. Every result is summed in the order of the depth index, in pieces of kDepthPiece
// that are added up in y: the same whatever the blocks and threads.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

// The columns of the widest panel; packed matrices are sized for it.
constexpr int64_t kMaxPanel = 32;
constexpr int64_t kRowTile = 48;  // rows of one piece of work
constexpr int64_t kDepthPiece = 512;

struct Gemm {
  const float* a = nullptr;
  int64_t a_stride = 0;  // from row to row
  // On x86 (or null): element (r, k) of a is at a[row_at[r] + depth_at[k]].
  const int32_t *row_at = nullptr, *depth_at = nullptr;
  const float* b = nullptr;
  int64_t b_step = 0;  // from depth to depth of a matrix whose columns are contiguous; 0: packed panels
  int64_t rows = 0, columns = 0, depth = 0;
  const float* bias = nullptr;  // per column, or null
  float* y = nullptr;
  int64_t y_stride = 0;
  float min = -HUGE_VALF, max = HUGE_VALF;
  float* copies = nullptr;  // copied_floats of each thread, or null
};

// The floats for copies of rows, which 64-bit ARM multiplies in fewer instructions. Blocks of little depth
// are copied to the stack.
constexpr int64_t kSmallDepth = 128, kCopiedColumns = 48;
inline int64_t copied_floats(int64_t columns, int64_t depth) {
  return depth <= kSmallDepth || columns < kCopiedColumns
             ? 0
             : 8 * divide_up(std::min(depth, kDepthPiece), 4) * 4;
}

// Counts the floats of a packed matrix, false on overflow.
[[nodiscard]] inline bool packed_floats(int64_t columns, int64_t depth, int64_t* floats) {
  return checked_mul(divide_up(columns, kMaxPanel) * kMaxPanel, depth, floats);
}

int64_t panel_width();
// Return "f32_gemm_" or "f32_conv_gemm_", and the tile of the instruction set in use: rows by columns.
const char* gemm_name();
const char* conv_gemm_name();
// Returns the rows of a block, if other numbers of rows take more instructions each; else 1.
int64_t row_unit(int64_t columns);
// Returns the first row of the t-th of `tiles` pieces, which have whole units; the last has up to one more.
inline int64_t tile_row(int64_t rows, int64_t t, int64_t tiles, int64_t unit) {
  return t == tiles ? rows : rows / unit * t / tiles * unit;
}
// Returns whether a vector along the depth wastes less than one along the columns, for gemv row by row,
// unpacked. A column of a row costs as much as 64 multiplications of vectors besides its own.
inline bool few_columns(int64_t columns, int64_t depth) {
  return 4 * columns <= panel_width() && columns * (2 * depth / panel_width() + 64) <= depth;
}
// Computes columns first .. end - 1 (whole panels) of the product, all rows.
void gemm_columns(const Gemm& g, int64_t first, int64_t end);
// Adds depth k0 .. k0 + kDepthPiece - 1 of one panel's columns, all rows, for one piece after the other. `b`
// is the piece of the panel.
void gemm_piece(const Gemm& g, int64_t column, int64_t k0, const float* b);
// Packs panels first_panel .. end_panel - 1 of b, whose element (k, n) is at b[k * depth_step + n *
// column_step]; one of the steps is 1. These are `depth` of the total_depth rows of a panel; the first of
// them goes to `packed`.
void pack_panels(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                 int64_t total_depth, float* packed, int64_t first_panel, int64_t end_panel);
// Computes y[n] = bias[n] + matrix row n . x, clamped; matrix [columns, depth].
void gemv(const float* matrix, int64_t columns, int64_t depth, const float* x, const float* bias, float min,
          float max, float* y);

// Computes the whole product on the pool; g.b is packed or in place.
void gemm_parallel(const Gemm& g, ThreadPool* threads);
void pack_parallel(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                   float* packed, ThreadPool* threads);

}  // namespace sinter::simd
