// Products with weights of 2 to 8 bits, integers or floats, that stay as the file has them: few rows of x
// with rows of weights that are widened in registers, and widening of pieces of panels for the product of
// float/gemm.h.
#pragma once

#include "platforms/simd/table.h"
#include "runtime/backend/low_bit_matrix.h"

namespace sinter::simd {

inline constexpr int64_t kLowBitRows = 4;  // rows of x that are multiplied at a time
inline constexpr int64_t kMostLanes = 16;

// One matrix. Rows of weights and blocks begin at whole bytes (check_low_bit).
struct LowBit : LowBitMatrix {
  const uint8_t* end = nullptr;    // of the weights' bytes
  const float* numbers = nullptr;  // [kWeightTableSize]: those of float4 or of the table; else null
  bool is_rounded = false;         // blocks of x are rounded to int8 (activation_bits 8)
  // x is arranged as fixed-point numbers: integers of 24 bits and a unit for each 4, 8 or 16 neighbours, of
  // which the largest takes all bits. So a number is off by 2^-24 of that largest one at most. Rows with
  // numbers that are not finite, and those whose largest number is below 2^-80, are arranged as floats.
  bool is_fixed = false;
  // Rounded x is arranged for one row that meets the rows of weights one after another: the numbers of its
  // blocks are behind its bytes.
  bool is_one_stream = false;
};

LowBit low_bit_of(const LowBitMatrix& matrix);
// kUnsupported, with the reason, for what the products here do not compute.
Status check_low_bit(const LowBit& g);
// One of them; zero points in the terms of unsigned weights.
float low_bit_scale(const LowBit& g, int64_t at);
float low_bit_zero(const LowBit& g, int64_t at);

// Lanes of a vector of floats.
int64_t low_bit_lanes();
// Whether products of several rows of x unpack the weights once for all of them; other widths do so for each.
constexpr bool unpacks_once(int bits) { return bits == 4 || bits == 8; }
// Sets is_fixed or is_one_stream where that makes products faster. Before a row is arranged; one_row: most
// products have one row.
void choose_arrangement(LowBit* g, bool one_row);
// Floats of one row of x in the order in which the weights come out of their vectors; false on overflow.
[[nodiscard]] bool arranged_floats(const LowBit& g, int64_t* floats);
void arrange_row(const LowBit& g, const float* x, float* arranged);
// y[r, n] = bias[n] + x row r . weights row n, clamped, for columns first .. last - 1 and rows <=
// kLowBitRows; rows of `arranged` are `stride` floats apart.
void low_bit_products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows, int64_t first,
                      int64_t last, const float* bias, float min, float max, float* y, int64_t y_stride);
// Weights k0 .. k1 - 1 of the columns of a panel of float/gemm.h, in its order; k0 is a multiple of 16.
void widen_panel(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to);

}  // namespace sinter::simd
