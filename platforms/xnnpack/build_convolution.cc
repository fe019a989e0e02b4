#include <algorithm>
#include <iterator>

#include "platforms/xnnpack/build.h"
#include "platforms/xnnpack/call.h"

namespace sinter::xnnpack {
namespace {

// Integers pass scales of 1 and, as the weights' scales, the multipliers.
Status create_convolution(const Building& b, const Convolution& c, const Window& w, bool packed,
                          xnn_operator_t* op, bool* stopped) {
  const OpCall& call = b.call;
  const uint32_t flags = c.depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0;
  const ProductLimits& l = c.limits;
  const size_t group_in = w.in_c / w.group, group_out = w.out_c / w.group;
  if (is_integer(call))
    return outcome(xnn_create_convolution2d_nhwc_qs8_qc8w(
                       w.top, w.right, w.bottom, w.left, w.kernel_h, w.kernel_w, w.stride_h, w.stride_w,
                       w.dilation_h, w.dilation_w, w.group, group_in, group_out, w.in_step, w.out_step,
                       l.x_zero, 1.0f, constant(call, 3), constant(call, 1), constant(call, 2), l.y_zero,
                       1.0f, static_cast<int8_t>(l.low), static_cast<int8_t>(l.high), flags, nullptr,
                       b.creation.cache(packed), op),
                   b.creation, stopped);
  return outcome(
      SINTER_XNN_FLOAT(call, xnn_create_convolution2d_nhwc, w.top, w.right, w.bottom, w.left, w.kernel_h,
                       w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w, w.group, group_in,
                       group_out, w.in_step, w.out_step, constant(call, 1), constant(call, 2),
                       static_cast<float>(l.low), static_cast<float>(l.high), flags,
                       static_cast<xnn_code_cache_t>(nullptr), b.creation.cache(packed), op),
      b.creation, stopped);
}

Status create_deconvolution(const Building& b, const Convolution& c, const Window& w, xnn_operator_t* op,
                            bool* stopped) {
  const OpCall& call = b.call;
  const ProductLimits& l = c.limits;
  const size_t group_in = w.in_c / w.group, group_out = w.out_c / w.group;
  if (is_integer(call))
    return outcome(
        xnn_create_deconvolution2d_nhwc_qs8_qc8w(
            w.top, w.right, w.bottom, w.left, w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h,
            w.dilation_w, w.group, group_in, group_out, w.in_step, w.out_step, l.x_zero, 1.0f,
            constant(call, 3), constant(call, 1), constant(call, 2), l.y_zero, 1.0f,
            static_cast<int8_t>(l.low), static_cast<int8_t>(l.high), 0, nullptr, b.creation.cache(false), op),
        b.creation, stopped);
  return outcome(SINTER_XNN_FLOAT(call, xnn_create_deconvolution2d_nhwc, w.top, w.right, w.bottom, w.left,
                                  w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w,
                                  w.group, group_in, group_out, w.in_step, w.out_step, constant(call, 1),
                                  constant(call, 2), static_cast<float>(l.low), static_cast<float>(l.high),
                                  0u, static_cast<xnn_code_cache_t>(nullptr), b.creation.cache(false), op),
                 b.creation, stopped);
}

// With `packed`, a dry run claims that the weights are packed already. Deconvolutions report no size then.
Status create(const Building& b, const Convolution& c, const Window& w, bool packed, xnn_operator_t* op,
              bool* stopped) {
  return c.transposed ? create_deconvolution(b, c, w, op, stopped)
                      : create_convolution(b, c, w, packed, op, stopped);
}

xnn_status reshape(const OpCall& call, const Convolution& c, const Window& w, xnn_operator_t op,
                   pthreadpool_t threads, size_t* workspace, size_t* h, size_t* width) {
  size_t alignment = 0;
  if (c.transposed)
    return SINTER_XNN_ANY(call, xnn_reshape_deconvolution2d_nhwc, op, w.batch, w.in_h, w.in_w, w.adjust_h,
                          w.adjust_w, h, width, threads);
  return SINTER_XNN_ANY(call, xnn_reshape_convolution2d_nhwc, op, w.batch, w.in_h, w.in_w, workspace,
                        &alignment, h, width, threads);
}

// Measures the memory behind the weights, where a dry run ended: a row of zeros (its rounding is bounded) and
// an indirection buffer, whose size is measured on a copy of the operator with few channels.
Status measure_rest(const Building& b, const Convolution& c) {
  const Window& full = c.window;
  const size_t before = b.creation.bytes();
  Window w = full;
  constexpr size_t kFew = 16;
  if (c.transposed) {
    w.group = 1, w.in_c = 1, w.out_c = std::min(full.out_c / full.group, 2 * kFew);
  } else {
    w.group = static_cast<uint32_t>(std::min<size_t>(full.group, kFew));
    w.in_c = w.group, w.out_c = w.group * (full.out_c / full.group);
  }
  w.in_step = w.in_c, w.out_step = w.out_c;
  b.creation.restart();
  xnn_operator_t op = nullptr;
  bool stopped = false;
  SINTER_RETURN_IF_ERROR(create(b, c, w, false, &op, &stopped));
  SINTER_RETURN_UNLESS(!stopped, unsupported("the window is too large to be measured"));
  const size_t created = b.creation.bytes();
  size_t workspace = 0, h = 0, width = 0;
  SINTER_RETURN_IF_ERROR(
      outcome(reshape(b.call, c, w, op, nullptr, &workspace, &h, &width), b.creation, &stopped));
  const size_t indirection = b.creation.bytes() - created;
  const size_t channels = c.transposed ? full.in_c / full.group : full.in_c;
  const size_t zeros = c.transposed || full.padded()
                           ? align_up((align_up(channels, 64) + 32) * element_bytes(b.call), kBufferAlignment)
                           : 0;
  b.built->extra = before - b.creation.bytes() + indirection + zeros;
  return ok_status();
}

// Padding matters to windows of one tap only, dilation and strides to those of deconvolutions.
void set_window_parameters(const Building& b, const Convolution& c) {
  const Window& w = c.window;
  const bool pointwise = w.kernel_size() == 1 && w.stride_h == 1 && w.stride_w == 1 && !w.padded();
  const int64_t values[] = {static_cast<int64_t>(b.call.op),
                            static_cast<int64_t>(operand_dtype(b.call)),
                            w.group,
                            static_cast<int64_t>(w.in_c),
                            static_cast<int64_t>(w.out_c),
                            w.kernel_h,
                            w.kernel_w,
                            pointwise ? 1 : 0,
                            c.limits.x_zero,
                            c.transposed ? w.stride_h : 0,
                            c.transposed ? w.stride_w : 0,
                            c.transposed && (w.dilation_h > 1 || w.dilation_w > 1) ? 1 : 0};
  static_assert(std::size(values) == kPackingParameters);
  std::copy(std::begin(values), std::end(values), b.built->parameters);
}

}  // namespace

Status build_window(const Building& b, const Convolution& c) {
  const Window& w = c.window;
  set_window_parameters(b, c);
  if (is_integer(b.call)) SINTER_RETURN_IF_ERROR(check_multipliers(b.call));
  size_t h = w.out_h, width = w.out_w;
  bool stopped = false;
  SINTER_RETURN_IF_ERROR(create(b, c, w, true, &b.built->op, &stopped));
  if (stopped)
    return b.creation.refused_weights() ? measure_rest(b, c)
                                        : unsupported("too many channels to be measured");
  SINTER_RETURN_IF_ERROR(outcome(
      reshape(b.call, c, w, b.built->op, b.threads, &b.built->workspace, &h, &width), b.creation, &stopped));
  return same_size(w, h, width);
}

Status set_up_convolution(const SettingUp& s) {
  return set_up_outcome(SINTER_XNN_ANY(s.call, xnn_setup_convolution2d_nhwc, s.op, s.workspace,
                                       address(s.call.in(0)), address(s.call.out(0))));
}

Status set_up_deconvolution(const SettingUp& s) {
  return set_up_outcome(SINTER_XNN_ANY(s.call, xnn_setup_deconvolution2d_nhwc, s.op, address(s.call.in(0)),
                                       address(s.call.out(0))));
}

}  // namespace sinter::xnnpack
