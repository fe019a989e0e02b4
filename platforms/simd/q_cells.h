// The layout of a box's input, and of packed weights, in the convolution of few channels (q_narrow.h).
#pragma once

#include "platforms/simd/window.h"

namespace sinter::simd {

constexpr int64_t kNarrowChannels = 8;  // of the result, at most

// The cells of one line of a box, each of `unit` numbers.
struct Cells {
  int64_t step = 0;     // from one cell to the next, in numbers of the line
  int64_t parts = 0;    // cells of a pixel
  int64_t planes = 0;   // in which cell i is that of pixel i of the result, for one tap
  int64_t plane = 0;    // cells of a plane that are read
  int64_t window = 0;   // cells of one line of a window
  bool shared = false;  // between the taps of neighbouring pixels

  Cells(const Geometry& g, int64_t pixels, int64_t unit) {
    const int64_t c = g.in_channels, taps = g.kernel[2];
    step = g.stride[2] * c;
    shared = g.dilation[2] == 1 && step <= unit && unit % step == 0;
    parts = shared ? 1 : divide_up(c, unit);
    planes = shared ? 1 : g.stride[2] * parts;
    window = shared ? divide_up(taps * c, unit) : taps * parts;
    plane = pixels + offset(g, window - 1, unit) % kOffset;
  }
  // Where a window's cell j is: plane * kOffset + position in it.
  int64_t offset(const Geometry& g, int64_t j, int64_t unit) const {
    if (shared) return j * (unit / step);
    const int64_t at = j / parts * g.dilation[2];
    return (at % g.stride[2] * parts + j % parts) * kOffset + at / g.stride[2];
  }
  // Room for whole vectors, two of which are computed at a time.
  int64_t room() const { return plane + 32; }

  static constexpr int64_t kOffset = int64_t{1} << 31;
};

// Where packed weights are: words [line of the window][cell][channel], channels 1 to 4 or 8; then of each
// channel int32 bias and float multiplier.
inline int64_t narrow_columns(const Geometry& g) {
  return g.out_channels <= 4 ? g.out_channels : kNarrowChannels;
}
inline int64_t narrow_words(const Geometry& g, int64_t unit) {
  return g.kernel[0] * g.kernel[1] * Cells(g, 1, unit).window * narrow_columns(g);
}

}  // namespace sinter::simd
