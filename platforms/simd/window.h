// Windows of convolutions and pools over channels-last values, pixel by pixel.
#pragma once

#include "platforms/simd/table.h"
#include "runtime/backend/window.h"

namespace sinter::simd {

using Geometry = WindowGeometry;

// Returns whether every pixel of the input, in order, has a result that depends on it alone.
inline bool pointwise(const Geometry& g) {
  for (int i = 0; i < 3; ++i)
    if (g.kernel[i] != 1 || g.stride[i] != 1 || g.pad[i] != 0 || g.in[i] != g.out[i]) return false;
  return true;
}

// The window of one output pixel: taps first .. end - 1 of each axis are in the input, the first at `x`.
template <class T>
struct WindowOf {
  const T* x;
  int64_t at[3], first[3], end[3];

  bool empty() const { return first[0] == end[0] || first[1] == end[1] || first[2] == end[2]; }
  int64_t taps() const { return (end[0] - first[0]) * (end[1] - first[1]) * (end[2] - first[2]); }
};

using Window = WindowOf<float>;

// Output positions begin .. end - 1 of the last axis: their windows are inside the input along it.
struct InsideRange {
  int64_t begin, end;
};
inline InsideRange inside_range(const Geometry& g) {
  const int64_t reach = g.in[2] + g.pad[2] - (g.kernel[2] - 1) * g.dilation[2];  // their end, plus pad
  const int64_t begin = std::clamp<int64_t>(divide_up(g.pad[2], g.stride[2]), 0, g.out[2]);
  return {begin, std::clamp(reach <= 0 ? 0 : divide_up(reach, g.stride[2]), begin, g.out[2])};
}

// Returns the window of output pixel `row` of the whole batch.
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

// Counts the input positions that `out` neighbouring windows reach along an axis; false on overflow.
[[nodiscard]] inline bool reach(const Geometry& g, int axis, int64_t out, int64_t* in) {
  int64_t window = 0;
  return checked_mul(out - 1, g.stride[axis], in) &&
         checked_mul(g.kernel[axis] - 1, g.dilation[axis], &window) && checked_add(*in, window, in) &&
         checked_add<int64_t>(*in, 1, in);
}

// Calls f(window, row, count) for neighbouring output pixels of the last axis, from `row` of the whole batch
// on, whose windows have the same taps; `least` pixels or more to a thread.
template <class T, class F>
void for_each_run_of_windows(const Geometry& g, const T* x, ThreadPool* threads, int64_t least, F f) {
  const InsideRange inside = inside_range(g);
  parallel_for(threads, g.batch * g.out_pixels(), least, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin, count = 1; row < end; row += count) {
      const WindowOf<T> w = window_at(g, x, row);
      const bool is_inside = w.at[2] >= inside.begin && w.at[2] < inside.end;
      count = is_inside ? std::min(inside.end - w.at[2], end - row) : 1;
      f(w, row, count);
    }
  });
}

// Returns the divisor of a window's sum in AvgPool.
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
