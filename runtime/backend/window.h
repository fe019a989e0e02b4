// The window of a convolution, a transposed convolution or a pool, decoded from its attributes and the dims
// of its weights: the one place that reads these lists. Kernels, platforms and planner derive from it what
// they need.
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
// The kernel's dims are an attribute, otherwise dims of the weights.
template <class A>
inline constexpr bool kPoolWindow = requires(const A& a) {
  a.kernel;
};
// An element of the input goes into the kernel's dims of the output.
template <class A>
inline constexpr bool kTransposedWindow = requires(const A& a) {
  a.output_padding;
};
// Weights [spatial..., O], one input channel for each output channel; otherwise [O, spatial..., I].
template <class A>
inline constexpr bool kDepthwiseWindow = !kPoolWindow<A> && !requires(const A& a) {
  a.group;
};

// Along one spatial axis.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t begin = 0, end = 0;  // padding
  int64_t output_padding = 0;  // of transposed windows

  // Elements from the first tap to the last. For values that inference has checked.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// Whether every list is empty or as long as `axes` spatial axes require.
template <WindowAttrs A>
bool window_lists_fit(const A& a, int axes) {
  const auto fits = [](const IntList& list, int count) { return list.empty() || list.size() == count; };
  if constexpr (kPoolWindow<A>)
    if (a.kernel.size() != axes) return false;
  if constexpr (kTransposedWindow<A>)
    if (!fits(a.output_padding, axes)) return false;
  return fits(a.strides, axes) && fits(a.dilations, axes) && fits(a.pads, 2 * axes);
}

// Spatial axis i of `axes`. `weights`: their dims; pools have none. Needs window_lists_fit; checks nothing.
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
  if (!a.pads.empty()) w.begin = a.pads[i], w.end = a.pads[axes + i];
  return w;
}
template <WindowAttrs A>
WindowAxis window_axis(const OpCall& call, int i) {
  const int64_t* weights = nullptr;
  if constexpr (!kPoolWindow<A>) weights = call.in(1).dims;
  return window_axis(call.attrs<A>(), weights, call.in(0).rank - 2, i);
}

}  // namespace sinter
