// Arguments of kernels/low_bit.cu, low_bit_tile.cu and low_bit_halves.cu.
#pragma once

#include "platforms/cuda/grid/divider.h"

namespace sinter::cuda {

enum class FloatKind : int32_t { kFloat, kHalf, kBHalf, kDouble };

// y[r, n] = clamp(sum over k of x[r, k] * (w[n, k] - zero) * scale + bias[n]), where scale and zero are those
// of w's block: element n * blocks + k / block_size. Weights are unsigned numbers of 4 bits, low ones first,
// or of 8 bits; `moved` is what they have more than their values (8 or 128 for signed types, whose highest
// bit is flipped).
struct LowBitArguments {
  std::byte* y = nullptr;
  const std::byte *x = nullptr, *w = nullptr, *scales = nullptr;
  const std::byte* zeros = nullptr;    // null: 0
  const std::byte* bias = nullptr;     // null: 0
  FloatKind kind = FloatKind::kFloat;  // of x, scales, bias and y
  int32_t bits = 4;
  int32_t is_signed = 0;
  int32_t float_zeros = 0;  // 1: zeros have x's type; 0: w's
  uint32_t rows = 0, columns = 0, depth = 0;
  uint32_t pitch = 0;  // bytes from a row of weights to the next: a multiple of 16 (low_bit_any: not used)
  Divider block_size;
  uint32_t blocks = 0;  // of a row
  Divider column_tiles;
  double low = 0, high = 0;
};

// Columns of a warp: more of them where x takes less of the shared memory's time.
constexpr int low_bit_columns(int rows) { return rows == 1 ? 4 : 2; }

// Weights of 16 bytes, which a lane of low_bit_rows reads at once.
constexpr int low_bit_segment(int bits) { return 128 / bits; }
// Elements of x in shared memory at a time. Behind each segment are four floats' room, so that lanes read
// from different banks.
constexpr int low_bit_chunk(int rows) { return rows == 1 ? 4096 : 1024; }
constexpr int low_bit_shared(int bits, int rows) {
  return rows * (low_bit_chunk(rows) + low_bit_chunk(rows) / low_bit_segment(bits) * 4) * 4;
}

inline constexpr int kLowBitTile = 64;   // rows and columns of low_bit_tile's tiles
inline constexpr int kLowBitDepth = 32;  // of a step
inline constexpr int kLowBitStride = kLowBitTile + 4;

// A stage of low_bit_half_tile's: x and weights as 16-bit floats, and the columns' scales.
inline constexpr int kLowBitHalfStage = 2 * kLowBitTile * kLowBitDepth * 2 + kLowBitTile * 4;

}  // namespace sinter::cuda
