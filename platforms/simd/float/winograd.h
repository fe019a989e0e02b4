// Winograd's convolution (runtime/backend/winograd.h), block by block of tiles: the inputs of a block are
// transformed, for each position of a tile they are one product with the transformed filters of that
// position, and the products are transformed into outputs. Filters are transformed when they are packed.
#pragma once

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/window.h"

namespace sinter::simd {

// Channels are padded to whole vectors of any instruction set.
constexpr int64_t kWinogradVector = 16;

// The division of a call. It is the same on every instruction set, because workspaces are planned ahead;
// results do not depend on it.
struct WinogradPlan {
  int64_t tile = 0, inputs = 0, positions = 0;  // m, m + 2 and the square of that
  int64_t rows = 0, columns = 0, tiles = 0;     // tiles of an image, and of the batch
  int64_t blocks = 0, parts = 0;  // units of work: blocks of tiles times parts of the output channels
  int64_t chunk = 0;              // output channels of a product
  int64_t slots = 0;              // threads that have units
  // Floats from position to position and from tile to tile, of inputs and of products.
  int64_t input_position = 0, input_tile = 0, product_position = 0, product_tile = 0;
  int64_t slot_floats = 0;    // workspace of a thread
  int64_t line_floats = 0;    // the part for transformed lines of neighbouring tiles
  int64_t filter_floats = 0;  // packed filters of a position

  int64_t units() const { return blocks * parts; }
  // Blocks are equal, or have block_tiles, which leaves the rest to the last.
  int64_t block_tiles = 0;
  int64_t first_tile(int64_t block) const {
    return block_tiles == 0 ? tiles * block / blocks : std::min(block_tiles * block, tiles);
  }
};

// Pixels of `channels` numbers, `row` and `pixel` floats apart.
struct WinogradPixels {
  const float* x;
  int64_t row, pixel, channels;
};

// The places of the transformed inputs of `count` neighbouring tiles: floats from position to position, from
// tile to tile, and from four channels to the next four if all tiles' are together.
struct WinogradInputs {
  float* to = nullptr;
  int64_t count = 0, position = 0, tile = 0, vector = 0;
  int64_t rows = 0, columns = 0;  // outputs of all of these tiles that are in the image
};

// The places of a tile's outputs, for the first of its channels.
struct WinogradStore {
  const float* bias;  // or null
  float min, max;
  float* y;
  int64_t row, pixel;     // floats from row to row, from pixel to pixel
  int64_t rows, columns;  // that are in the image
};

// True if four channels of all tiles of a block are beside each other, false for all channels of a tile.
#if defined(__aarch64__)
constexpr bool kTilesTogether = true;
#else
constexpr bool kTilesTogether = false;
#endif

// Transforms the inputs of neighbouring tiles, which share columns. `lines` has a vector for each position of
// the tiles. Returns whether no output is small, or false if that takes a closer look (small_outputs).
using InputTransform = bool (*)(const WinogradPixels& x, float* lines, const WinogradInputs& to);
// Transforms the products of one tile at m, `position` floats from position to position, and stores outputs.
using OutputTransform = void (*)(const float* m, int64_t position, int64_t channels, float* lines,
                                 const WinogradStore& to);
// Return the functions for tiles of this size.
InputTransform input_transform(int64_t tile);
OutputTransform output_transform(int64_t tile);
// Multiplies one position of a block of tiles.
void multiply_tiles(const Gemm& g);

// An output is small if the largest magnitude in its window is below that of the tile's inputs divided by 2
// to the power of kWinogradSpreadBits, or if the tile has an input that is NaN, infinite or not below 2 to
// the power of kWinogradLargestBits. Rounding errors of a tile are relative to its largest input. Small
// outputs are computed directly, so that no output depends on an input outside its window (docs/numerics.md).
// Which ones these are depends on the inputs of the tile alone, not on the number of threads.
constexpr int kWinogradSpreadBits = 6, kWinogradLargestBits = 64;
// The most tiles of a block.
constexpr int64_t kMostBlockTiles = 96;

// Returns a tile's small outputs in the image: bit tile * i + j for output j of row i. x is the first input.
uint64_t small_outputs(int64_t tile, const WinogradPixels& x, int64_t rows, int64_t columns);
// Computes these outputs directly. The first input is pixel (top, left) of `image`; `filters` [channels, 3,
// 3, g.in_channels], `to` begin at the first of these output channels. `window` has room for a window.
void compute_small_outputs(const Geometry& g, uint64_t small, int64_t tile, const float* image, int64_t top,
                           int64_t left, const float* filters, int64_t channels, const WinogradStore& to,
                           float* window);

// Plans the call. A thread's workspace is at most 1 / `sharing` of a single thread's, if some tiles fit.
// False on overflow.
[[nodiscard]] bool plan_winograd(const Geometry& g, int64_t tile, int64_t threads, int64_t sharing,
                                 WinogradPlan* plan);

// Packs the filters of a call with the attribute: those of each position in panels (gemm.h).
void pack_winograd(const OpCall& call, std::byte* packed, ThreadPool* threads);

}  // namespace sinter::simd
