// Arguments of kernels/low_bit_*.cu.
#pragma once

#include "platforms/cuda/grid/divider.h"
#include "platforms/cuda/kernels/product/experts.h"
#include "runtime/core/weight_format.h"

namespace sinter::cuda {

enum class FloatKind : int32_t { kFloat, kHalf, kBHalf, kDouble };

// Computes y[r, n] = clamp(sum over k of x[r, k] * (w[n, k] - zero) * scale + bias[n]), where scale and zero
// are those of w's block, element n * blocks + k / block_size.
//
// Kernels read weights of 4 bits, low ones first, and of 8 bits as they are stored. Weights of 2, 3, 5, 6 and
// 7 bits are packed for them (operators/low_bit.cc): 32 neighbours of a row take `bits` words of 32 bits,
// which hold planes of 4 bits (4 words, from 5 bits on), of 2 bits (2 words, except with 5 bits) and of 1 bit
// (1 word, with odd widths), low bits first. low_bit_any reads all types as they are stored.
struct LowBitArguments {
  std::byte* y = nullptr;
  const std::byte *x = nullptr, *w = nullptr, *scales = nullptr;
  const std::byte* zeros = nullptr;    // null: 0
  const std::byte* bias = nullptr;     // null: 0
  const float* table = nullptr;        // that of the format
  const float* row_scales = nullptr;   // [rows, blocks]: x has been rounded to integers in units of these
  FloatKind kind = FloatKind::kFloat;  // of x, bias and y
  DType scale_type = DType::kFloat32;
  WeightFormat format;
  int32_t zero_bits = 4;    // bits of a zero point that is an integer
  int32_t float_zeros = 0;  // 1: zeros have x's type; 0: w's
  uint32_t rows = 0, columns = 0, depth = 0;
  uint32_t pitch = 0;  // bytes from a row of weights to the next (low_bit_any: not used)
  Divider block_size;
  uint32_t blocks = 0;  // of a row
  Divider column_tiles;
  Experts experts;  // for low_bit_*_row and low_bit_any: the weights, scales, zero points and bias of experts
                    // follow each other
  double low = 0, high = 0;
};

// Rounds each block of a row of x to integers of 8 bits, in x's type, with a scale.
struct LowBitRoundArguments {
  const std::byte* x = nullptr;
  std::byte* rounded = nullptr;
  float* scales = nullptr;  // [rows, blocks]
  FloatKind kind = FloatKind::kFloat;
  uint32_t rows = 0, depth = 0, block = 1;
  Divider blocks;
};

// Returns the columns of a warp: more of them where x takes less of the shared memory's time.
constexpr int low_bit_columns(int rows) { return rows == 1 ? 4 : 2; }

// The rows along the second axis of a grid, where each row is computed on its own.
inline constexpr uint32_t kLowBitRowsOfLaunch = 32768;

// Returns the weights that a lane of low_bit_rows reads at once: 16 bytes of 4 or 8 bits, or 32 in planes.
constexpr int low_bit_segment(int bits) { return bits == 8 ? 16 : 32; }
constexpr bool low_bit_in_planes(int bits) { return bits != 4 && bits != 8; }
// Return the words before the plane of 2 bits and before that of 1 bit.
constexpr int low_bit_twos(int bits) { return bits >= 5 ? 4 : 0; }
constexpr int low_bit_ones(int bits) { return bits - 1; }
constexpr bool low_bit_has_twos(int bits) { return bits == 2 || bits == 3 || bits >= 6; }
constexpr bool low_bit_has_ones(int bits) { return bits % 2 != 0; }
// Returns the elements of x in shared memory at a time. Behind each segment is room for four floats, so that
// lanes read from different banks.
constexpr int low_bit_chunk(int rows) { return rows == 1 ? 4096 : 1024; }
constexpr int low_bit_shared(int bits, int rows) {
  return rows * (low_bit_chunk(rows) + low_bit_chunk(rows) / low_bit_segment(bits) * 4) * 4;
}

inline constexpr int kLowBitTile = 64;   // rows and columns of low_bit_tile's tiles
inline constexpr int kLowBitDepth = 32;  // of a step
inline constexpr int kLowBitStride = kLowBitTile + 4;

// The bytes of a stage of low_bit_half_tile: x and weights as 16-bit floats, and the columns' scales.
inline constexpr int kLowBitHalfStage = 2 * kLowBitTile * kLowBitDepth * 2 + kLowBitTile * 4;

}  // namespace sinter::cuda
