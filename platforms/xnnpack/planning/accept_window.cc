#include "platforms/xnnpack/planning/accept.h"
#include "runtime/core/checked.h"
#include "runtime/core/op_enums.h"

namespace sinter::xnnpack {
namespace {

// Returns the bytes of a row of sums of `channels`, rounded up as by the kernels, `rows` times per thread.
size_t rows_of_sums(const Request& r, size_t channels, size_t rounding, size_t rows = 1) {
  return r.threads * align_up((channels + rounding) * rows * sizeof(float), kBufferAlignment);
}

Status check_pool(const Window& w) {
  const uint32_t reach_h = (w.kernel_h - 1) * w.dilation_h + 1, reach_w = (w.kernel_w - 1) * w.dilation_w + 1;
  SINTER_RETURN_UNLESS(w.kernel_size() > 1 && w.stride_h <= w.kernel_h && w.stride_w <= w.kernel_w,
                       unsupported("the library has no windows of one element or with gaps between them"));
  // The library fills a dilated window that leaves the input with arbitrary pixels.
  SINTER_RETURN_UNLESS(!w.padded() || (w.dilation_h == 1 && w.dilation_w == 1),
                       unsupported("dilated pooling may not be padded here"));
  SINTER_RETURN_UNLESS(w.top < reach_h && w.bottom < reach_h && w.left < reach_w && w.right < reach_w,
                       unsupported("a window is entirely in the padding"));
  return ok_status();
}

}  // namespace

Status check_transposed_window(const Window& w) {
  SINTER_RETURN_UNLESS(
      w.adjust_h < w.stride_h && w.adjust_w < w.stride_w && w.out_h >= w.stride_h && w.out_w >= w.stride_w,
      unsupported("output padding or stride exceed what the library takes"));
  // The device measures an operator with one channel of input and up to a tile of output in a scratch buffer
  // of 64 KiB: at most these bytes for each tap and each phase.
  constexpr size_t kBytesOfTap = 512, kBytesOfPhase = 256, kMostBytes = 48 << 10;
  const size_t phases = size_t{w.stride_h} * w.stride_w;
  SINTER_RETURN_UNLESS(w.kernel_size() <= kMostBytes / kBytesOfTap && phases <= kMostBytes / kBytesOfPhase &&
                           w.kernel_size() * kBytesOfTap + phases * kBytesOfPhase <= kMostBytes,
                       unsupported("a transposed window has more taps than are measured"));
  return ok_status();
}

size_t convolution_workspace(const Request& r, const Window& w) {
  constexpr size_t kManyTaps = 5;
  if (!w.depthwise() || w.kernel_size() < kManyTaps) return 0;
  // Sums are int32 or float32.
  return rows_of_sums(r, w.in_c, r.call.in(0).dtype == DType::kInt8 ? 64 : 16);
}

Status accept_max_pool(const Request& r, size_t*) {
  SINTER_RETURN_UNLESS(!r.call.has_output(1), unsupported("max pooling gives no indices here"));
  Window w;
  SINTER_RETURN_IF_ERROR(window_of<MaxPoolAttrs>(r.call, &w));
  return check_pool(w);
}

Status accept_avg_pool(const Request& r, size_t* workspace) {
  Window w;
  SINTER_RETURN_IF_ERROR(window_of<AvgPoolAttrs>(r.call, &w));
  SINTER_RETURN_IF_ERROR(check_pool(w));
  SINTER_RETURN_UNLESS(w.dilation_h == 1 && w.dilation_w == 1,
                       unsupported("average pooling has no dilation here"));
  SINTER_RETURN_UNLESS(!w.padded() || r.call.attrs<AvgPoolAttrs>().count_include_pad == 0,
                       unsupported("padding is not counted here"));
  // Windows of many pixels keep rows of sums; without padding the library takes four times that.
  if (w.kernel_size() > 4) *workspace = rows_of_sums(r, w.in_c, 16, w.padded() ? 1 : 4);
  return ok_status();
}

Status accept_resize(const Request& r, size_t*) {
  const auto& a = r.call.attrs<ResizeAttrs>();
  const TensorView &x = r.call.in(0), &y = r.call.out(0);
  size_t h = 0, w = 0;
  SINTER_RETURN_UNLESS(static_cast<ResizeMode>(a.mode) == ResizeMode::kLinear && a.antialias == 0 &&
                           a.exclude_outside == 0 && spatial_axes(x, &h, &w) && spatial_axes(y, &h, &w),
                       unsupported("only linear resizing of one or two axes"));
  SINTER_RETURN_UNLESS(x.dims[0] == y.dims[0] && x.dims[x.rank - 1] == y.dims[y.rank - 1],
                       unsupported("only spatial axes may be resized"));
  const auto coordinates = static_cast<ResizeCoordinates>(a.coordinates);
  const bool corners = coordinates == ResizeCoordinates::kAlignCorners;
  SINTER_RETURN_UNLESS(corners || coordinates == ResizeCoordinates::kHalfPixel ||
                           coordinates == ResizeCoordinates::kPytorchHalfPixel ||
                           coordinates == ResizeCoordinates::kAsymmetric,
                       unsupported("only half_pixel, align_corners and asymmetric coordinates"));
  for (int i = 1; i < x.rank - 1; ++i) {
    SINTER_RETURN_UNLESS(y.dims[i] > 1 || x.dims[i] == 1, unsupported("an axis is resized to one element"));
    // The library derives the scale from the sizes.
    if (i < a.scales.size() && a.scales[i] != 0) {
      const double ratio = static_cast<double>(y.dims[i]) / static_cast<double>(x.dims[i]);
      SINTER_RETURN_UNLESS(static_cast<float>(a.scales[i]) == static_cast<float>(ratio),
                           unsupported("the scale is not the ratio of the sizes"));
    }
  }
  return ok_status();
}

}  // namespace sinter::xnnpack
