// Windows of convolutions and pools over channels-last values; always three spatial axes, missing ones have
// length 1.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

struct Geometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, group = 1;
  int64_t in_step = 0, out_step = 0;  // elements from one pixel to the next, where they are not dense
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, end_pad[3] = {0, 0, 0};

  int64_t in_pixel() const { return in_step != 0 ? in_step : in_channels; }
  int64_t out_pixel() const { return out_step != 0 ? out_step : out_channels; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
};

// From an op's lists (empty: ones, or no padding) and a kernel's dims; inference has checked them.
inline Geometry make_geometry(const OpCall& call, const IntList& strides, const IntList& dilations,
                              const IntList& pads, const int64_t* kernel) {
  const TensorView &x = call.in(0), &y = call.out(0);
  const int axes = x.rank - 2;
  Geometry g;
  g.batch = x.dims[0], g.in_channels = x.dims[x.rank - 1], g.out_channels = y.dims[y.rank - 1];
  (void)x.evenly_spaced(&g.in_step);
  (void)y.evenly_spaced(&g.out_step);
  for (int i = 0; i < axes; ++i) {
    const int j = 3 - axes + i;
    g.in[j] = x.dims[1 + i], g.out[j] = y.dims[1 + i], g.kernel[j] = kernel[i];
    if (!strides.empty()) g.stride[j] = strides[i];
    if (!dilations.empty()) g.dilation[j] = dilations[i];
    if (!pads.empty()) g.pad[j] = pads[i], g.end_pad[j] = pads[i + axes];
  }
  return g;
}

// One output pixel: taps first .. end - 1 of each axis are in the input, the first of them at `x`.
template <class T>
struct WindowOf {
  const T* x;
  int64_t at[3], first[3], end[3];

  bool empty() const { return first[0] == end[0] || first[1] == end[1] || first[2] == end[2]; }
  int64_t taps() const { return (end[0] - first[0]) * (end[1] - first[1]) * (end[2] - first[2]); }
};

using Window = WindowOf<float>;

// Output positions of the last axis whose windows are inside the input along it: begin .. end - 1.
struct InsideRange {
  int64_t begin, end;
};
inline InsideRange inside_range(const Geometry& g) {
  const int64_t reach = g.in[2] + g.pad[2] - (g.kernel[2] - 1) * g.dilation[2];  // such positions, plus pad
  const int64_t begin = std::min(divide_up(g.pad[2], g.stride[2]), g.out[2]);
  return {begin, std::clamp(reach <= 0 ? 0 : divide_up(reach, g.stride[2]), begin, g.out[2])};
}

// The window of output pixel `row` of the whole batch.
template <class T>
WindowOf<T> window_at(const Geometry& g, const T* x, int64_t row) {
  const int64_t pixel = row % g.out_pixels();
  WindowOf<T> w{x, {pixel / (g.out[1] * g.out[2]), pixel / g.out[2] % g.out[1], pixel % g.out[2]}, {}, {}};
  int64_t start[3];
  for (int i = 0; i < 3; ++i) {
    const int64_t s = w.at[i] * g.stride[i] - g.pad[i];
    w.first[i] = s >= 0 ? 0 : std::min(divide_up(-s, g.dilation[i]), g.kernel[i]);
    w.end[i] = s >= g.in[i] ? w.first[i]
                            : std::clamp(divide_up(g.in[i] - s, g.dilation[i]), w.first[i], g.kernel[i]);
    start[i] = s + w.first[i] * g.dilation[i];
  }
  if (w.empty())
    w.end[0] = w.first[0];
  else
    w.x += (((row / g.out_pixels() * g.in[0] + start[0]) * g.in[1] + start[1]) * g.in[2] + start[2]) *
           g.in_pixel();
  return w;
}

// What AvgPool divides a window's sum by.
template <class T>
int64_t pool_divisor(const Geometry& g, const WindowOf<T>& w, bool with_padding) {
  if (!with_padding) return w.taps();
  int64_t count = 1;
  for (int i = 0; i < 3; ++i) {
    const int64_t start = w.at[i] * g.stride[i] - g.pad[i];
    count *= std::min(g.kernel[i], divide_up(g.in[i] + g.end_pad[i] - start, g.dilation[i]));
  }
  return count;
}

}  // namespace sinter::simd
