// Arguments of kernels/move/move.cu.
#pragma once

#include "platforms/cuda/grid/box.h"

namespace sinter::cuda {

// Computes to[n] = from[n] for the elements of a box, each of `width` bytes (1, 2, 4, 8 or 16).
struct MoveArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Box box;
  Steps steps[2];  // of `to`, of `from`
  int32_t width = 4;
  // The same move in elements of `wide` bytes, for operands that begin at multiples of that: there are
  // `wide_size`, and `wide_dim` along the last axis.
  int32_t wide = 4;
  uint32_t wide_size = 1;
  Divider wide_dim;
};

// The moves of one launch; block_y is the number of one.
inline constexpr int kMovesTogether = 12;
struct MovesArguments {
  MoveArguments moves[kMovesTogether];
};

// A move in tiles of the axis `a`, along which elements of `from` are neighbours, and the axis `b`, along
// which those of `to` are. `planes` are all other axes.
struct TransposeArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Box planes;
  Steps steps[2];  // of `to`, of `from`
  uint32_t a_dim = 1, b_dim = 1;
  int64_t to_a_step = 0, from_b_step = 0;  // bytes
  Divider a_tiles, b_tiles;
  uint32_t tiles = 0;  // of all planes
  int32_t width = 4;
};
inline constexpr int kTransposeTile = 32;

}  // namespace sinter::cuda
