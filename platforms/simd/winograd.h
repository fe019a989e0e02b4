// Winograd's convolution (runtime/backend/winograd.h), block by block of tiles: the inputs of a block are
// transformed, for each position of a tile they are one product with the transformed filters of that
// position, and the products are transformed into outputs. Filters are transformed when they are packed.
#pragma once

#include "platforms/simd/gemm.h"
#include "platforms/simd/window.h"

namespace sinter::simd {

// Channels are padded to whole vectors of any instruction set.
constexpr int64_t kWinogradVector = 16;

// How a call is divided. The same on every instruction set, for workspaces are planned ahead; results depend
// on none of it.
struct WinogradPlan {
  int64_t tile = 0, inputs = 0, positions = 0;  // m, m + 2 and the square of that
  int64_t rows = 0, columns = 0, tiles = 0;     // tiles of an image, and of the batch
  int64_t blocks = 0, parts = 0;  // units of work: blocks of tiles times parts of the output channels
  int64_t chunk = 0;              // output channels of a product
  int64_t slots = 0;              // threads that have units
  // Floats from position to position and from tile to tile, of inputs and of products.
  int64_t input_position = 0, input_tile = 0, product_position = 0, product_tile = 0;
  int64_t slot_floats = 0;    // workspace of a thread
  int64_t line_floats = 0;    // of it: the transformed lines of neighbouring tiles
  int64_t filter_floats = 0;  // packed filters of a position

  int64_t units() const { return blocks * parts; }
  // Of equal blocks, or of blocks of block_tiles, which leave the rest to the last.
  int64_t block_tiles = 0;
  int64_t first_tile(int64_t block) const {
    return block_tiles == 0 ? tiles * block / blocks : std::min(block_tiles * block, tiles);
  }
};

// Where the transformed inputs of `count` neighbouring tiles go: floats from position to position, from tile
// to tile, and from four channels to the next four where those of all tiles are together.
struct WinogradInputs {
  float* to = nullptr;
  int64_t count = 0, position = 0, tile = 0, vector = 0;
};

// The outputs of a tile, for the first of its channels.
struct WinogradStore {
  const float* bias;  // or null
  float min, max;
  float* y;
  int64_t row, pixel;     // floats from row to row, from pixel to pixel
  int64_t rows, columns;  // that are in the image
};

// `sharing`: the workspace of a thread is at most this part of what one thread alone has, if some tiles fit.
// False on overflow.
[[nodiscard]] bool plan_winograd(const Geometry& g, int64_t tile, int64_t threads, int64_t sharing,
                                 WinogradPlan* plan);

}  // namespace sinter::simd
