#include "platforms/xnnpack/planning/window.h"

#include <algorithm>

namespace sinter::xnnpack {
namespace {

constexpr int64_t kMaxWindow = 1 << 12;  // kernel, stride, dilation, padding

bool in_range(const WindowAxis& a) {
  for (const int64_t n : {a.kernel, a.pad, a.end_pad, a.output_padding})
    if (n < 0 || n > kMaxWindow) return false;
  for (const int64_t n : {a.stride, a.dilation})
    if (n < 1 || n > kMaxWindow) return false;
  return true;
}

// Returns the padding at the end that gives exactly `out` positions.
uint32_t end_padding(size_t in, size_t out, uint32_t kernel, uint32_t stride, uint32_t dilation,
                     uint32_t begin) {
  const auto covered = static_cast<int64_t>((out - 1) * stride + size_t{kernel - 1} * dilation + 1);
  return static_cast<uint32_t>(std::max<int64_t>(0, covered - static_cast<int64_t>(in) - begin));
}

}  // namespace

bool spatial_axes(const TensorView& v, size_t* h, size_t* w) {
  if (v.rank != 3 && v.rank != 4) return false;
  *h = v.rank == 4 ? static_cast<size_t>(v.dims[1]) : 1;
  *w = static_cast<size_t>(v.dims[v.rank - 2]);
  return *h <= kMaxAxis && *w <= kMaxAxis;
}

bool pixel_step(const TensorView& v, size_t* step) {
  int64_t elements = 0;
  if (!v.evenly_spaced(&elements)) return false;
  *step = static_cast<size_t>(elements);
  return true;
}

Status set_window(const OpCall& call, const WindowAxis& height, const WindowAxis& width, Window* w) {
  const TensorView &x = call.in(0), &y = call.out(0);
  SINTER_RETURN_UNLESS(spatial_axes(x, &w->in_h, &w->in_w) && spatial_axes(y, &w->out_h, &w->out_w),
                       unsupported("only one or two spatial axes of up to 2^20 elements"));
  SINTER_RETURN_UNLESS(pixel_step(x, &w->in_step) && pixel_step(y, &w->out_step),
                       unsupported("pixels are not evenly spaced"));
  SINTER_RETURN_UNLESS(in_range(height) && in_range(width),
                       unsupported("the window is out of the library's range"));
  w->batch = static_cast<size_t>(x.dims[0]);
  w->in_c = static_cast<size_t>(x.dims[x.rank - 1]);
  w->out_c = static_cast<size_t>(y.dims[y.rank - 1]);
  const auto n = [](int64_t value) { return static_cast<uint32_t>(value); };
  w->kernel_h = n(height.kernel), w->kernel_w = n(width.kernel);
  w->stride_h = n(height.stride), w->stride_w = n(width.stride);
  w->dilation_h = n(height.dilation), w->dilation_w = n(width.dilation);
  w->top = n(height.pad), w->left = n(width.pad);
  w->bottom = n(height.end_pad), w->right = n(width.end_pad);
  w->adjust_h = n(height.output_padding), w->adjust_w = n(width.output_padding);
  return ok_status();
}

Status set_group(int64_t group, Window* w) {
  SINTER_RETURN_UNLESS(group >= 1 && group <= INT32_MAX,
                       unsupported("the number of groups is out of the library's range"));
  w->group = static_cast<uint32_t>(group);
  return ok_status();
}

void set_pool_padding(Window* w) {
  w->bottom = end_padding(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->dilation_h, w->top);
  w->right = end_padding(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->dilation_w, w->left);
}

}  // namespace sinter::xnnpack
