// A window operation (convolution, pool) as the library describes it: two-dimensional. One-dimensional ones
// have the height 1.
#pragma once

#include "runtime/backend/window.h"

namespace sinter::xnnpack {

// The most entries of a spatial axis: the library computes coordinates in float32.
inline constexpr int64_t kMaxAxis = 1 << 20;

struct Window {
  size_t batch = 0, in_h = 1, in_w = 1, in_c = 0, out_h = 1, out_w = 1, out_c = 0;
  size_t in_step = 0, out_step = 0;  // elements from one pixel to the next
  uint32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  uint32_t top = 0, left = 0, bottom = 0, right = 0;  // for pools enlarged for ceil_mode
  uint32_t adjust_h = 0, adjust_w = 0, group = 1;

  bool padded() const { return (top | left | bottom | right) != 0; }
  size_t kernel_size() const { return size_t{kernel_h} * kernel_w; }
  // Returns whether each group has one input and one output channel.
  bool depthwise() const { return group == in_c && group == out_c; }
};

// Writes dims[1 .. rank - 2] as height and width; false if the library does not take them.
bool spatial_axes(const TensorView& v, size_t* h, size_t* w);
// Writes the elements from one pixel (or row) to the next; false if these are not evenly spaced.
bool pixel_step(const TensorView& v, size_t* step);

// Sets everything but the group. Fails with kUnsupported if a number exceeds the library's range.
Status set_window(const OpCall& call, const WindowAxis& height, const WindowAxis& width, Window* w);
Status set_group(int64_t group, Window* w);
// Sets the padding at the end so that it gives exactly the call's output.
void set_pool_padding(Window* w);

// Describes the window of a call whose attributes are A.
template <WindowAttrs A>
Status window_of(const OpCall& call, Window* w) {
  const int axes = call.in(0).rank - 2;
  SINTER_RETURN_UNLESS(axes == 1 || axes == 2, unsupported("only one or two spatial axes"));
  const auto& a = call.attrs<A>();
  SINTER_RETURN_UNLESS(window_lists_fit(a, axes), unsupported("the window does not fit the input"));
  SINTER_RETURN_IF_ERROR(set_window(call, axes == 2 ? window_axis<A>(call, 0) : WindowAxis{},
                                    window_axis<A>(call, axes - 1), w));
  if constexpr (kPoolWindow<A>) {
    set_pool_padding(w);
    return ok_status();
  } else if constexpr (kDepthwiseWindow<A>) {
    return set_group(call.in(0).dims[axes + 1], w);
  } else {
    return set_group(a.group, w);
  }
}

}  // namespace sinter::xnnpack
