// Lines of a convolution's input with its padding, which the windows of a tile of output pixels cover. A
// product reads the windows in them at listed places, so that windows that overlap are not copied one by one.
#pragma once

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/window.h"

namespace sinter::simd {

constexpr int64_t kLineFloats = 4096;  // a thread's lines, if the call moves many more floats

// The division of output pixels into tiles of `lines` by `columns`; those at the ends have fewer.
struct LineTiles {
  int64_t lines = 0, columns = 0;
  int64_t down = 0, across = 0;  // tiles of an image
  int64_t line_floats = 0;       // of a line of a tile's input
  int64_t input_lines = 0;

  int64_t tiles(const Geometry& g) const { return g.batch * down * across; }
  int64_t pixels() const { return lines * columns; }
};

// Chooses tiles whose lines and lists fit `floats`, for windows of two axes that share lines; false if there
// are none. A tile should have `rows` pixels, and there should be `threads` tiles at least.
bool choose_line_tiles(const Geometry& g, int64_t floats, int64_t rows, int64_t threads, LineTiles* tiles);

// Returns the floats of both lists.
inline int64_t list_floats(const Geometry& g, const LineTiles& t) {
  return t.pixels() + g.taps() * (g.in_channels / g.group);
}
// Writes the places of a tile's pixels and of depths, which are the inputs of a window.
void list_places(const Geometry& g, const LineTiles& t, int32_t* pixels, int32_t* depths);

// The output pixels of a tile, and the row of the first one over the whole batch. Several lines are whole.
struct LineTile {
  int64_t image, line, column, lines, columns;
  int64_t row(const Geometry& g) const { return (image * g.out[1] + line) * g.out[2] + column; }
};
LineTile line_tile(const Geometry& g, const LineTiles& t, int64_t i);

// Copies the inputs of a tile, of one group.
void copy_lines(const Geometry& g, const LineTiles& t, const LineTile& tile, const float* x, int64_t group,
                float* to);

}  // namespace sinter::simd
