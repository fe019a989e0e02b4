#include "platforms/xnnpack/build.h"
#include "platforms/xnnpack/call.h"
#include "runtime/core/op_enums.h"

namespace sinter::xnnpack {
namespace {

constexpr float kUnbounded = static_cast<float>(kInfinity);

}  // namespace

Status build_max_pool(const Building& b) {
  Window w;
  SINTER_RETURN_IF_ERROR(window_of<MaxPoolAttrs>(b.call, &w));
  size_t h = w.out_h, width = w.out_w;
  bool stopped = false;
  SINTER_XNN(SINTER_XNN_FLOAT(b.call, xnn_create_max_pooling2d_nhwc, w.top, w.right, w.bottom, w.left,
                              w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w,
                              -kUnbounded, kUnbounded, 0u, &b.built->op));
  SINTER_RETURN_IF_ERROR(
      outcome(SINTER_XNN_FLOAT(b.call, xnn_reshape_max_pooling2d_nhwc, b.built->op, w.batch, w.in_h, w.in_w,
                               w.in_c, w.in_step, w.out_step, &h, &width, b.threads),
              b.creation, &stopped));
  return same_size(w, h, width);
}

Status build_avg_pool(const Building& b) {
  Window w;
  SINTER_RETURN_IF_ERROR(window_of<AvgPoolAttrs>(b.call, &w));
  size_t h = w.out_h, width = w.out_w, alignment = 0;
  bool stopped = false;
  SINTER_XNN(SINTER_XNN_FLOAT(b.call, xnn_create_average_pooling2d_nhwc, w.top, w.right, w.bottom, w.left,
                              w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, -kUnbounded, kUnbounded, 0u,
                              &b.built->op));
  SINTER_RETURN_IF_ERROR(outcome(
      SINTER_XNN_FLOAT(b.call, xnn_reshape_average_pooling2d_nhwc, b.built->op, w.batch, w.in_h, w.in_w,
                       w.in_c, w.in_step, w.out_step, &b.built->workspace, &alignment, &h, &width, b.threads),
      b.creation, &stopped));
  // One factor for each output pixel follows the indirection buffer.
  if (stopped && w.padded())
    b.built->extra = align_up(w.out_h * w.out_w * element_bytes(b.call), kBufferAlignment);
  return same_size(w, h, width);
}

Status build_resize(const Building& b) {
  const TensorView &x = b.call.in(0), &y = b.call.out(0);
  size_t in_h = 1, in_w = 1, out_h = 1, out_w = 1, alignment = 0;
  SINTER_RETURN_UNLESS(spatial_axes(x, &in_h, &in_w) && spatial_axes(y, &out_h, &out_w),
                       unsupported("only linear resizing of one or two axes"));
  const auto batch = static_cast<size_t>(x.dims[0]), c = static_cast<size_t>(x.dims[x.rank - 1]);
  const auto coordinates = static_cast<ResizeCoordinates>(b.call.attrs<ResizeAttrs>().coordinates);
  const uint32_t flags = coordinates == ResizeCoordinates::kAlignCorners ? XNN_FLAG_ALIGN_CORNERS
                         : coordinates == ResizeCoordinates::kAsymmetric ? XNN_FLAG_TENSORFLOW_LEGACY_MODE
                                                                         : 0;
  bool stopped = false;
  SINTER_XNN(SINTER_XNN_FLOAT(b.call, xnn_create_resize_bilinear2d_nhwc, out_h, out_w, flags, &b.built->op));
  SINTER_RETURN_IF_ERROR(
      outcome(SINTER_XNN_FLOAT(b.call, xnn_reshape_resize_bilinear2d_nhwc, b.built->op, batch, in_h, in_w, c,
                               c, c, &b.built->workspace, &alignment, b.threads),
              b.creation, &stopped));
  // Two factors for each output pixel follow the indirection buffer.
  if (stopped) b.built->extra = align_up(2 * out_h * out_w * element_bytes(b.call), kBufferAlignment);
  return ok_status();
}

Status set_up_max_pool(const SettingUp& s) {
  return set_up_outcome(SINTER_XNN_FLOAT(s.call, xnn_setup_max_pooling2d_nhwc, s.op, address(s.call.in(0)),
                                         address(s.call.out(0))));
}

Status set_up_avg_pool(const SettingUp& s) {
  return set_up_outcome(SINTER_XNN_FLOAT(s.call, xnn_setup_average_pooling2d_nhwc, s.op, s.workspace,
                                         address(s.call.in(0)), address(s.call.out(0))));
}

Status set_up_resize(const SettingUp& s) {
  return set_up_outcome(SINTER_XNN_FLOAT(s.call, xnn_setup_resize_bilinear2d_nhwc, s.op, s.workspace,
                                         address(s.call.in(0)), address(s.call.out(0))));
}

}  // namespace sinter::xnnpack
