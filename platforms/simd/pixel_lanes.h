// Convolutions of few output channels, which would leave most lanes of a vector empty: the lanes are
// neighbouring pixels of a line instead.
//
// The input is copied box by box into cells of 32 bits, each with `unit` numbers: one of float32, or as many
// of int8 as the instruction set multiplies in a lane. A window's line is a few cells, and the next pixel's
// cells are beside them in the box.
#pragma once

#include "platforms/simd/int8/conv_tile.h"

namespace sinter::simd {

constexpr int64_t kNarrowChannels = 8;  // at most, of the result

// The cells of one line of a box.
struct Cells {
  int64_t step = 0;     // from one cell to the next, in numbers of the line
  int64_t parts = 0;    // cells of a pixel
  int64_t beside = 0;   // planes of a pixel: its parts, and more where four are written at a time
  int64_t planes = 0;   // planes in which cell i belongs to pixel i of the result, for one tap
  int64_t plane = 0;    // cells of a plane that are read
  int64_t window = 0;   // cells of one line of a window
  bool shared = false;  // the taps of neighbouring pixels share cells

  Cells(const Geometry& g, int64_t pixels, int64_t unit) {
    const int64_t c = g.in_channels, taps = g.kernel[2];
    step = g.stride[2] * c;
    shared = g.dilation[2] == 1 && step <= unit && unit % step == 0;
    parts = shared ? 1 : divide_up(c, unit);
    beside = parts % 4 < 2 ? parts : divide_up(parts, 4) * 4;
    planes = shared ? 1 : g.stride[2] * beside;
    window = shared ? divide_up(taps * c, unit) : taps * parts;
    plane = pixels + offset(g, window - 1, unit) % kOffset;
  }
  // Returns the place of a window's cell j: plane * kOffset + position in it.
  int64_t offset(const Geometry& g, int64_t j, int64_t unit) const {
    if (shared) return j * (unit / step);
    const int64_t at = j / parts * g.dilation[2];
    return (at % g.stride[2] * beside + j % parts) * kOffset + at / g.stride[2];
  }
  // The room holds whole vectors, two of which are computed at a time.
  int64_t room() const { return plane + 32; }

  static constexpr int64_t kOffset = int64_t{1} << 31;
};

// Returns the packed channels, 1 to 4 or 8: weights are words [line of the window][cell][channel].
inline int64_t narrow_columns(const Geometry& g) {
  return g.out_channels <= 4 ? g.out_channels : kNarrowChannels;
}
inline int64_t narrow_words(const Geometry& g, int64_t unit) {
  return g.kernel[0] * g.kernel[1] * Cells(g, 1, unit).window * narrow_columns(g);
}

// Returns whether the lanes may be pixels, for constant filters or others; the same on every machine.
inline bool narrow_fits(const Geometry& g) {
  constexpr int64_t kWorthwhilePixels = 8;  // of a line
  constexpr int64_t kWorthwhileDepth = 8;
  return g.group == 1 && g.out_channels <= kNarrowChannels && g.out[2] >= kWorthwhilePixels &&
         g.stride[2] <= g.kernel[2] &&
         g.kernel[0] * g.kernel[1] * g.kernel[2] * g.in_channels >= kWorthwhileDepth;
}

// Returns the number of input lines that a window reaches, which are kept.
inline int64_t narrow_kept_lines(const Geometry& g) { return (g.kernel[1] - 1) * g.dilation[1] + 1; }

// Chooses boxes for `threads`, where a pixel of the input has at most `cells`: result columns that leave the
// kept lines in the first cache. False if the memory overflows.
[[nodiscard]] inline bool choose_narrow_boxes(const Geometry& g, int64_t cells, int64_t threads,
                                              QBoxes* boxes) {
  constexpr int64_t kBoxCells = 8192, kLeastPixels = 32;
  int64_t of_column = 0, pixels = 0;
  if (!checked_mul(cells, narrow_kept_lines(g), &of_column) ||
      !checked_mul(of_column, g.kernel[0], &of_column) || !checked_mul(of_column, g.stride[2], &of_column))
    return false;
  pixels = std::max(kBoxCells / of_column, kLeastPixels);
  boxes->out_pixels = even_piece(g.out[2], pixels);
  boxes->out_lines = std::max<int64_t>(g.out[1], 1);
  boxes->share(g, threads);
  return boxes->measure(g, 1);
}

// Counts one thread's bytes: places of a window's cells and lines, cells, and a line of numbers.
[[nodiscard]] inline bool narrow_scratch_bytes(const Geometry& g, const QBoxes& boxes, int64_t unit,
                                               int64_t* bytes) {
  const Cells cells(g, boxes.out_pixels, unit);
  int64_t all = 0, line = 0;
  if (!checked_mul(narrow_kept_lines(g), g.kernel[0], &all) || !checked_mul(all, cells.planes, &all) ||
      !checked_mul(all, cells.room(), &all) || !checked_add(all, cells.window, &all) ||
      !checked_add(all, g.kernel[0] * g.kernel[1], &all) || !checked_mul<int64_t>(all, 4, &all) ||
      // Up to three pixels more are read.
      !checked_mul(cells.plane + 4, std::max(cells.step, unit), &line) ||
      !checked_add<int64_t>(line, 16, &line) || !checked_mul(line, 4 / unit, &line) ||
      !checked_add(all, line, &all) || !checked_add<int64_t>(all, kBufferAlignment, &all))
    return false;
  *bytes = all / static_cast<int64_t>(kBufferAlignment) * static_cast<int64_t>(kBufferAlignment);
  return *bytes < INT32_MAX;
}

}  // namespace sinter::simd
