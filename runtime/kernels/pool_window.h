// Windows of pools over the spatial axes of [N, spatial..., C]: their attributes checked, and the walk over
// them.
#pragma once

#include "runtime/backend/window.h"
#include "runtime/kernels/indices.h"

namespace sinter::pool {

inline constexpr int kMaxSpatial = kMaxRank - 2;
inline constexpr int64_t kGrainElements = 1 << 13;
// The number of windows that are checked one by one to prove that none is entirely in the padding.
inline constexpr int64_t kMaxWindowsProved = 1 << 16;

// The windows along one spatial axis.
struct Axis : WindowAxis {
  int64_t in = 0, out = 0;

  // The taps of window o in the input are first, first + 1, ..., last - 1.
  void taps(int64_t o, int64_t* first, int64_t* last) const {
    const int64_t start = o * stride - pad;
    *first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    *last = start >= in ? 0 : std::min(kernel, (in - start + dilation - 1) / dilation);
    if (*last < *first) *last = *first;
  }
  // Returns the taps within the input and the stated padding, which count_include_pad counts.
  int64_t padded_taps(int64_t o) const {
    const int64_t start = o * stride - pad;
    return std::min(kernel, (in + end_pad - start + dilation - 1) / dilation);
  }
};

struct Window {
  int axes = 0;
  Axis axis[kMaxSpatial];
};

template <class A>
Status read_window(const A& a, const TensorView& x, Window* w) {
  SINTER_RETURN_UNLESS(x.rank >= 3, invalid("a value of rank %a cannot be pooled", x.rank));
  const int n = w->axes = x.rank - 2;
  SINTER_RETURN_UNLESS(a.kernel.size() == n,
                       invalid("the window has %a axes, the input %b spatial ones", a.kernel.size(), n));
  SINTER_RETURN_UNLESS(
      window_lists_fit(a, n),
      invalid("strides, dilations or pads do not have one entry for each of %a spatial axes", n));
  for (int i = 0; i < n; ++i) {
    static_cast<WindowAxis&>(w->axis[i]) = window_axis(a, nullptr, n, i);
    w->axis[i].in = x.dims[i + 1];
  }
  return ok_status();
}

// Sets k->out. `skips_padding`: padding has no value, so every window must hold an element.
inline Status check_axis_of_window(Axis* k, bool ceil_mode, bool skips_padding) {
  constexpr int64_t kLimit = int64_t{1} << 40;  // sums and products of three below cannot overflow
  SINTER_RETURN_UNLESS(k->kernel >= 1 && k->stride >= 1 && k->dilation >= 1 && k->pad >= 0 && k->end_pad >= 0,
                       invalid("window size %a and stride %b must be positive", k->kernel, k->stride));
  int64_t extent = 0;
  SINTER_RETURN_UNLESS(checked_mul(k->kernel - 1, k->dilation, &extent) && extent < kLimit &&
                           k->in < kLimit && k->pad < kLimit && k->end_pad < kLimit && k->stride < kLimit &&
                           k->dilation < kLimit,
                       unsupported("a window, pad or axis is 2^40 or larger"));
  ++extent;
  const int64_t room = k->in + k->pad + k->end_pad - extent;
  SINTER_RETURN_UNLESS(
      room >= 0 || ceil_mode || k->in == 0,
      invalid("a window of %a exceeds %b elements with their padding", extent, room + extent));
  if (ceil_mode) {
    k->out = (room + k->stride + k->stride - 1) / k->stride;
    if (room + k->stride <= 0) k->out = 0;
    // The last window starts in the input or in the padding before it.
    if (k->out > 0 && (k->out - 1) * k->stride >= k->in + k->pad) --k->out;
  } else {
    k->out = room < 0 ? 0 : room / k->stride + 1;
  }
  if (!skips_padding || k->out == 0) return ok_status();
  const bool proved = k->pad < extent && k->end_pad < extent && k->dilation <= k->in;
  if (proved) return ok_status();
  SINTER_RETURN_UNLESS(k->out <= kMaxWindowsProved,
                       unsupported("%a windows over an axis of %b are too many to check", k->out, k->in));
  for (int64_t o = 0; o < k->out; ++o) {
    int64_t first = 0, last = 0;
    k->taps(o, &first, &last);
    SINTER_RETURN_UNLESS(first < last, unsupported("window %a contains only padding", o));
  }
  return ok_status();
}

template <class A>
Status pool_window(const A& a, const TensorView& x, bool skips_padding, Window* w) {
  SINTER_RETURN_IF_ERROR(read_window(a, x, w));
  SINTER_RETURN_IF_ERROR(check_code(a.ceil_mode, 2));
  for (int i = 0; i < w->axes; ++i)
    SINTER_RETURN_IF_ERROR(check_axis_of_window(&w->axis[i], a.ceil_mode != 0, skips_padding));
  return ok_status();
}

inline Dims output_dims(const TensorView& x, const Window& w) {
  Dims dims(x.shape());
  for (int i = 0; i < w.axes; ++i) dims.d[i + 1] = w.axis[i].out;
  return dims;
}

// Calls f(offset) for every element of a window that is in the input; offset counts spatial positions.
template <class F>
void for_each_tap(const Window& w, const int64_t* first, const int64_t* last, const int64_t* start, F&& f) {
  int64_t tap[kMaxSpatial];
  for (int i = 0; i < w.axes; ++i) {
    if (first[i] >= last[i]) return;
    tap[i] = first[i];
  }
  for (;;) {
    int64_t offset = 0;
    for (int i = 0; i < w.axes; ++i) offset = offset * w.axis[i].in + start[i] + tap[i] * w.axis[i].dilation;
    f(offset);
    int i = w.axes - 1;
    for (; i >= 0; --i) {
      if (++tap[i] < last[i]) break;
      tap[i] = first[i];
    }
    if (i < 0) return;
  }
}

// Calls f(n, window index, first, last, start, output position) for each output position of every image.
template <class F>
void for_each_window(const TensorView& x, const Window& w, ThreadPool* threads, F&& f) {
  int64_t windows = 1, taps = 1;
  for (int i = 0; i < w.axes; ++i) windows *= w.axis[i].out, taps *= std::min(w.axis[i].kernel, w.axis[i].in);
  const int64_t cost = std::max<int64_t>(1, taps * x.dims[x.rank - 1]);
  parallel_for(threads, x.dims[0] * windows, std::max<int64_t>(1, kGrainElements / cost),
               [&](int64_t begin, int64_t end) {
                 for (int64_t item = begin; item < end; ++item) {
                   int64_t index[kMaxSpatial], first[kMaxSpatial], last[kMaxSpatial], start[kMaxSpatial];
                   int64_t rest = item % windows;
                   for (int i = w.axes - 1; i >= 0; --i) {
                     index[i] = rest % w.axis[i].out;
                     rest /= w.axis[i].out;
                     start[i] = index[i] * w.axis[i].stride - w.axis[i].pad;
                     w.axis[i].taps(index[i], &first[i], &last[i]);
                   }
                   f(item / windows, index, first, last, start, item);
                 }
               });
}

}  // namespace sinter::pool
