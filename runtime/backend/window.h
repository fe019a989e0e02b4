// The window of a convolution, a transposed convolution or a pool, decoded from its attributes and the dims
// of its weights. Kernels, platforms and converter use this decoded form.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter {

// The attributes of an op with a window: lists with one number for each spatial axis (pads: all begins, then
// all ends), or empty (1; no padding).
template <class A>
concept WindowAttrs = requires(const A& a) {
  a.strides;
  a.dilations;
  a.pads;
};
// The kernel's dims are an attribute here, otherwise dims of the weights.
template <class A>
inline constexpr bool kPoolWindow = requires(const A& a) {
  a.kernel;
};
// An element of the input contributes to as many elements of the output as the kernel has.
template <class A>
inline constexpr bool kTransposedWindow = requires(const A& a) {
  a.output_padding;
};
// The weights are [spatial..., O], one input channel for each output channel; otherwise [O, spatial..., I].
template <class A>
inline constexpr bool kDepthwiseWindow = !kPoolWindow<A> && !requires(const A& a) {
  a.group;
};

// The window along one spatial axis.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad = 0, end_pad = 0;
  int64_t output_padding = 0;  // of transposed windows

  // Returns the elements from the first tap to the last, for values that inference has checked.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// Returns whether every list is empty or as long as `axes` spatial axes require.
template <WindowAttrs A>
bool window_lists_fit(const A& a, int axes) {
  const auto fits = [](const IntList& list, int count) { return list.empty() || list.size() == count; };
  if constexpr (kPoolWindow<A>)
    if (a.kernel.size() != axes) return false;
  if constexpr (kTransposedWindow<A>)
    if (!fits(a.output_padding, axes)) return false;
  return fits(a.strides, axes) && fits(a.dilations, axes) && fits(a.pads, 2 * axes);
}

// Returns the window along spatial axis i of `axes`, whose lists fit (window_lists_fit). Pools have no
// `weights`.
template <WindowAttrs A>
WindowAxis window_axis(const A& a, [[maybe_unused]] const int64_t* weights, int axes, int i) {
  WindowAxis w;
  if constexpr (kPoolWindow<A>)
    w.kernel = a.kernel[i];
  else
    w.kernel = weights[i + (kDepthwiseWindow<A> ? 0 : 1)];
  if constexpr (kTransposedWindow<A>)
    if (!a.output_padding.empty()) w.output_padding = a.output_padding[i];
  if (!a.strides.empty()) w.stride = a.strides[i];
  if (!a.dilations.empty()) w.dilation = a.dilations[i];
  if (!a.pads.empty()) w.pad = a.pads[i], w.end_pad = a.pads[axes + i];
  return w;
}
template <WindowAttrs A>
WindowAxis window_axis(const OpCall& call, int i) {
  const int64_t* weights = nullptr;
  if constexpr (!kPoolWindow<A>) weights = call.in(1).dims;
  return window_axis(call.attrs<A>(), weights, call.in(0).rank - 2, i);
}

// The geometry of a channels-last call: operand 0, window and output, always with three spatial axes. Missing
// ones are the first and have length 1.
inline constexpr int kMaxWindowAxes = 3;
struct WindowGeometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, group = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, end_pad[3] = {0, 0, 0};
  int64_t in_step = 0, out_step = 0;  // elements from one pixel to the next; 0: not set, dense

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  int64_t in_pixel() const { return in_step != 0 ? in_step : in_channels; }
  int64_t out_pixel() const { return out_step != 0 ? out_step : out_channels; }
  int64_t group_in() const { return in_channels / group; }
  int64_t group_out() const { return out_channels / group; }

  // Sets spatial axis i of `axes`.
  void set_axis(int axes, int i, const WindowAxis& w, int64_t in_length, int64_t out_length) {
    const int j = kMaxWindowAxes - axes + i;
    in[j] = in_length, out[j] = out_length, kernel[j] = w.kernel;
    stride[j] = w.stride, dilation[j] = w.dilation, pad[j] = w.pad, end_pad[j] = w.end_pad;
  }
  void set_steps(const OpCall& call) {
    (void)call.in(0).evenly_spaced(&in_step);
    (void)call.out(0).evenly_spaced(&out_step);
  }
};

// Returns the geometry of a call that inference has checked, with one to three spatial axes.
template <WindowAttrs A>
WindowGeometry window_geometry(const OpCall& call) {
  const TensorView &x = call.in(0), &y = call.out(0);
  const int axes = x.rank - 2;
  WindowGeometry g;
  g.batch = x.dims[0], g.in_channels = x.dims[x.rank - 1], g.out_channels = y.dims[y.rank - 1];
  if constexpr (kDepthwiseWindow<A>)
    g.group = g.in_channels;
  else if constexpr (!kPoolWindow<A>)
    g.group = call.attrs<A>().group;
  g.set_steps(call);
  // Compilers make copies of variable length of a loop over `axes`, which take longer than all the rest.
  for (int i = 0; i < kMaxWindowAxes; ++i)
    if (i < axes) g.set_axis(axes, i, window_axis<A>(call, i), x.dims[1 + i], y.dims[1 + i]);
  return g;
}

}  // namespace sinter
