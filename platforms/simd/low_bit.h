// Products with weights of 4 and 8 bits that stay packed: rows of x with rows of weights that are widened in
// registers, and widening of pieces of panels for the product of gemm.h.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

inline constexpr int64_t kLowBitRows = 4;  // rows of x that are multiplied at a time
inline constexpr int64_t kMostLanes = 16;

struct LowBit {
  const uint8_t* weights = nullptr;  // [columns, depth]
  const uint8_t* end = nullptr;      // of the weights' bytes
  const float* scales = nullptr;     // [columns, blocks]
  const std::byte* zeros = nullptr;  // null: none
  DType zero_type = DType::kNone;
  bool narrow = false;     // 4 bits, else 8
  bool is_signed = false;  // two's complement
  int64_t columns = 0, depth = 0, block = 0, blocks = 0;

  int64_t weights_a_byte() const { return narrow ? 2 : 1; }
  // Vectors of bytes that a block takes.
  int64_t chunks(int64_t lanes) const { return divide_up(divide_up(block, weights_a_byte()), lanes); }
};

// Lanes of a vector of floats.
int64_t low_bit_lanes();
// Floats of one row of x in the order in which a block's weights come out of their vectors, zeros between
// blocks; false on overflow.
[[nodiscard]] bool arranged_floats(const LowBit& g, int64_t* floats);
void arrange_row(const LowBit& g, const float* x, float* arranged);
// y[r, n] = bias[n] + x row r . weights row n, clamped, for columns first .. last - 1 and rows <=
// kLowBitRows; rows of `arranged` are `stride` apart.
void low_bit_products(const LowBit& g, const float* arranged, int64_t stride, int64_t rows, int64_t first,
                      int64_t last, const float* bias, float min, float max, float* y, int64_t y_stride);
// Weights k0 .. k1 - 1 of the columns of a panel of gemm.h, in its order; k0 is even.
void widen_panel(const LowBit& g, int64_t column, int64_t k0, int64_t k1, float* to);

}  // namespace sinter::simd
