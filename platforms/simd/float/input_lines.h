// Lines of a convolution's input with its padding: what the windows of a tile of output pixels cover. A
// product reads the windows in them at listed places, so that windows that overlap are not copied one by one.
#pragma once

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/window.h"

namespace sinter::simd {

constexpr int64_t kLineFloats = 4096;  // room for a thread's lines, where the call moves many more floats

// Output pixels in tiles of `lines` by `columns`; those at the ends have fewer.
struct LineTiles {
  int64_t lines = 0, columns = 0;
  int64_t down = 0, across = 0;  // tiles of an image
  int64_t line_floats = 0;       // of a line of a tile's input
  int64_t input_lines = 0;

  int64_t tiles(const Geometry& g) const { return g.batch * down * across; }
  int64_t pixels() const { return lines * columns; }
};

// Chooses tiles whose lines and lists fit `floats`, for windows of two axes that share lines; false where
// there are none. `rows`: pixels that a tile should have; `threads`: the minimum of tiles, if possible.
bool choose_line_tiles(const Geometry& g, int64_t floats, int64_t rows, int64_t threads, LineTiles* tiles);

// Floats of both lists.
inline int64_t list_floats(const Geometry& g, const LineTiles& t) {
  return t.pixels() + g.taps() * (g.in_channels / g.group);
}
// The places of pixels (of a tile) and of depths: of inputs in a window.
void list_places(const Geometry& g, const LineTiles& t, int32_t* pixels, int32_t* depths);

// A tile: output pixels, and the row of the first one over the whole batch. Where it has several lines, they
// are whole.
struct LineTile {
  int64_t image, line, column, lines, columns;
  int64_t row(const Geometry& g) const { return (image * g.out[1] + line) * g.out[2] + column; }
};
LineTile line_tile(const Geometry& g, const LineTiles& t, int64_t i);

// Copies the inputs of a tile, of one group.
void copy_lines(const Geometry& g, const LineTiles& t, const LineTile& tile, const float* x, int64_t group,
                float* to);

}  // namespace sinter::simd
