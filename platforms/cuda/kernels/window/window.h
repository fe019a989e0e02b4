// The rows of a product that convolutions and layers read in place, without a copy of their windows: row r is
// an output pixel of an image, element k of it channel k % channels under tap k / channels of the window
// there. A matrix is the case of one tap that moves from pixel to pixel.
//
// Sizes are those of WindowGeometry (three spatial axes); operators/window_rows.h fills the struct and checks
// that positions fit 32 bits.
#pragma once

#include "platforms/cuda/grid/divider.h"

namespace sinter::cuda {

struct WindowRows {
  Divider pixels, out1, out2;  // for a row: output pixels of an image, and the last two of their axes
  Divider channels, kernel1,
      kernel2;  // for an element: channels of a group, and the last two axes of the window
  int32_t in[3] = {1, 1, 1};
  int32_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1},
          pad[3] = {0, 0, 0};           // a transposed window has dilations < 0
  int64_t in_step = 0, image_step = 0;  // elements from a pixel, and from an image, to the next
  int32_t matrix = 0;                   // 1: row r begins at r * in_step, and nothing is padding
};

// The beginning of a row's window.
struct WindowStart {
  int64_t image = 0;  // element of the input
  int32_t at[3] = {0, 0, 0};
};
SINTER_DEVICE WindowStart window_start(const WindowRows& w, uint32_t row) {
  WindowStart s;
  if (w.matrix != 0) {
    s.image = int64_t{row} * w.in_step;
    return s;
  }
  uint32_t pixel, p1, p2;
  s.image = int64_t{w.pixels.divide(row, &pixel)} * w.image_step;
  const uint32_t line = w.out2.divide(pixel, &p2);
  const uint32_t p0 = w.out1.divide(line, &p1);
  s.at[0] = static_cast<int32_t>(p0) * w.stride[0] - w.pad[0];
  s.at[1] = static_cast<int32_t>(p1) * w.stride[1] - w.pad[1];
  s.at[2] = static_cast<int32_t>(p2) * w.stride[2] - w.pad[2];
  return s;
}

// The place of element k of every row, from the beginning of its window.
struct WindowTap {
  int32_t by[3] = {0, 0, 0};
  int32_t channel = 0;  // of the group
};
SINTER_DEVICE WindowTap window_tap(const WindowRows& w, uint32_t k) {
  WindowTap t;
  if (w.matrix != 0) {
    t.channel = static_cast<int32_t>(k);
    return t;
  }
  uint32_t channel, t1, t2;
  const uint32_t tap = w.channels.divide(k, &channel);
  const uint32_t line = w.kernel2.divide(tap, &t2);
  const uint32_t t0 = w.kernel1.divide(line, &t1);
  t.channel = static_cast<int32_t>(channel);
  t.by[0] = static_cast<int32_t>(t0) * w.dilation[0];
  t.by[1] = static_cast<int32_t>(t1) * w.dilation[1];
  t.by[2] = static_cast<int32_t>(t2) * w.dilation[2];
  return t;
}

// Returns the element of the input that a row reads under a tap; -1 for padding. Elements of one tap follow
// each other, up to the last channel.
SINTER_DEVICE int64_t window_element(const WindowRows& w, const WindowStart& s, const WindowTap& t) {
  if (w.matrix != 0) return s.image + t.channel;
  const int32_t i0 = s.at[0] + t.by[0], i1 = s.at[1] + t.by[1], i2 = s.at[2] + t.by[2];
  const bool inside = static_cast<uint32_t>(i0) < static_cast<uint32_t>(w.in[0]) &&
                      static_cast<uint32_t>(i1) < static_cast<uint32_t>(w.in[1]) &&
                      static_cast<uint32_t>(i2) < static_cast<uint32_t>(w.in[2]);
  if (!inside) return -1;
  return s.image + ((int64_t{i0} * w.in[1] + i1) * w.in[2] + i2) * w.in_step + t.channel;
}

}  // namespace sinter::cuda
