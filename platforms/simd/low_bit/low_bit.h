// Products with weights of 2 to 8 bits, integers or floats, that stay as the file has them. For few rows of
// x, rows of weights are widened in registers; for more, pieces of panels are widened for the product of
// float/gemm.h.
#pragma once

#include "platforms/simd/table.h"
#include "runtime/backend/low_bit_matrix.h"

namespace sinter::simd {

inline constexpr int64_t kLowBitRows = 4;  // rows of x that are multiplied at a time
inline constexpr int64_t kMostLanes = 16;

// One matrix. Rows of weights and blocks begin at whole bytes (check_low_bit).
struct LowBit : LowBitMatrix {
  const uint8_t* end = nullptr;    // the end of the weights' bytes
  const float* numbers = nullptr;  // [kWeightTableSize]: those of float4 or of the table; else null
  bool is_rounded = false;         // blocks of x are rounded to int8 (activation_bits 8)
  // True if x is arranged as fixed-point numbers: integers of 24 bits and a unit for each 4, 8 or 16
  // neighbours, of which the largest takes all bits. A number is off by 2^-24 of that one at most. Rows that
  // are not finite, or whose largest number is below 2^-80, are arranged as floats.
  bool is_fixed = false;
  // True if rounded x is arranged for one row, which is multiplied by rows of weights one after another: the
  // numbers of its blocks are behind its bytes.
  bool is_one_stream = false;
};

LowBit low_bit_of(const LowBitMatrix& matrix);
// Returns kUnsupported, with the reason, for calls that the products here do not compute.
Status check_low_bit(const LowBit& g);
// Returns one of them; zero points are in the terms of unsigned weights.
float low_bit_scale(const LowBit& g, int64_t at);
float low_bit_zero(const LowBit& g, int64_t at);

// Returns the lanes of a vector of floats.
int64_t low_bit_lanes();
// Returns whether products of several rows of x unpack the weights once for all of them, not for each.
constexpr bool unpacks_once(int bits) { return bits == 4 || bits == 8; }
// Sets is_fixed or is_one_stream if that makes products faster, before a row is arranged. one_row: most
// products have one row.
void choose_arrangement(LowBit* g, bool one_row);
// Counts the floats of a row of x in the order of the weights of their vectors; false on overflow.
[[nodiscard]] bool arranged_floats(const LowBit& g, int64_t* floats);
void arrange_row(const LowBit& g, const float* x, float* arranged);
// Computes y[r, n] = bias[n] + x row r . weights row n, clamped, for columns first .. last - 1 and rows <=
// kLowBitRows; rows of `arranged` are `stride` floats apart.
void low_bit_products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows, int64_t first,
                      int64_t last, const float* bias, float min, float max, float* y, int64_t y_stride);
// Widens weights k0 .. k1 - 1 of a panel's columns (float/gemm.h), in its order; k0 is a multiple of 16.
void widen_panel(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to);

}  // namespace sinter::simd
