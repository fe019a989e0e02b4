// RoiAlign: cuts regions out of feature maps and pools each to a fixed grid of bins, reading every bin at
// evenly spaced points. Average is the mean of the interpolated points. Max is, as ONNX defines it, the
// largest single weighted corner of any point (not the largest interpolated value).
#include <cmath>

#include "runtime/core/op_enums.h"
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

constexpr int64_t kChannels = 64;
// The most points per bin and axis; a region that needs more is not a region of an image.
constexpr int64_t kMaxPoints = 1 << 12;

Status infer_roi_align(OpCall& call) {
  const auto& a = call.attrs<RoiAlignAttrs>();
  const TensorView &x = call.in(0), &rois = call.in(1), &batches = call.in(2);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_compute_float(rois.dtype)));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 2, is_index_type(batches.dtype)));
  SINTER_RETURN_IF_ERROR(check_code(a.mode, 2));
  SINTER_RETURN_IF_ERROR(check_code(a.half_pixel, 2));
  SINTER_RETURN_UNLESS(x.rank == 4, invalid("the feature map has rank %a, not 4", x.rank));
  SINTER_RETURN_UNLESS(rois.rank == 2 && rois.dims[1] == 4, invalid("the regions are not [number, 4]"));
  SINTER_RETURN_UNLESS(batches.rank == 1 && batches.dims[0] == rois.dims[0],
                       invalid("the batch indices are not one for each of %a regions", rois.dims[0]));
  SINTER_RETURN_UNLESS(a.out_height >= 1 && a.out_width >= 1,
                       invalid("%a by %b bins are out of range", a.out_height, a.out_width));
  SINTER_RETURN_UNLESS(a.sampling_ratio >= 0 && a.sampling_ratio <= kMaxPoints,
                       invalid("%a points per bin are out of range", a.sampling_ratio));
  SINTER_RETURN_UNLESS(std::isfinite(a.spatial_scale), invalid("the spatial scale is not finite"));
  SINTER_RETURN_UNLESS((x.dims[1] > 0 && x.dims[2] > 0) || rois.dims[0] == 0,
                       invalid("the feature map is empty"));
  const int64_t dims[] = {rois.dims[0], a.out_height, a.out_width, x.dims[3]};
  return give_output(call, 0, x.dtype, dims);
}

// One axis of a region: the start and length of its bins, and the number of points in each.
template <class R>
struct Span {
  R start = 0, bin = 0;
  int64_t points = 0;
};

template <class R>
Status make_span(const RoiAlignAttrs& a, R from, R to, int64_t bins, Span<R>* span) {
  const auto scale = static_cast<R>(a.spatial_scale);
  const R offset = a.half_pixel != 0 ? R(0.5) : R(0);
  span->start = from * scale - offset;
  R length = to * scale - offset - span->start;
  if (a.half_pixel == 0) length = std::max<R>(length, 1);
  span->bin = length / static_cast<R>(bins);
  const R points = a.sampling_ratio > 0 ? static_cast<R>(a.sampling_ratio) : std::ceil(span->bin);
  SINTER_RETURN_UNLESS(
      std::isfinite(span->start) && std::isfinite(length) && points <= static_cast<R>(kMaxPoints),
      error(Code::kOutOfRange, "a region is not finite or has more than %a points per bin", kMaxPoints));
  span->points = points > 0 ? static_cast<int64_t>(points) : 0;
  return ok_status();
}

// Finds the two elements around a point and its distance from the first. False if it is outside the map.
template <class R>
bool locate(const Span<R>& span, int64_t bin, int64_t point, int64_t n, int64_t* low, int64_t* high,
            R* rest) {
  R at = span.start + static_cast<R>(bin) * span.bin +
         (static_cast<R>(point) + R(0.5)) * span.bin / static_cast<R>(span.points);
  if (!(at >= -1) || at > static_cast<R>(n)) return false;
  at = std::max<R>(at, 0);
  *low = static_cast<int64_t>(at);
  *high = *low + 1;
  if (*low >= n - 1) {
    *low = *high = n - 1;
    at = static_cast<R>(n - 1);
  }
  *rest = at - static_cast<R>(*low);
  return true;
}

template <class T, class R>
Status align_region(const RoiAlignAttrs& a, const TensorView& x, const R* roi, int64_t batch, T* to) {
  const int64_t height = x.dims[1], width = x.dims[2], channels = x.dims[3];
  const bool average = static_cast<RoiAlignMode>(a.mode) == RoiAlignMode::kAverage;
  Span<R> across, down;
  SINTER_RETURN_IF_ERROR(make_span(a, roi[0], roi[2], a.out_width, &across));
  SINTER_RETURN_IF_ERROR(make_span(a, roi[1], roi[3], a.out_height, &down));
  const T* image = x.as<T>() + batch * height * width * channels;
  const auto count = static_cast<double>(std::max<int64_t>(across.points * down.points, 1));
  double result[kChannels];
  for (int64_t by = 0; by < a.out_height; ++by) {
    for (int64_t bx = 0; bx < a.out_width; ++bx, to += channels) {
      for (int64_t c0 = 0; c0 < channels; c0 += kChannels) {
        const int64_t block = std::min(kChannels, channels - c0);
        std::fill(result, result + block, 0.0);
        bool first = true;
        for (int64_t iy = 0; iy < down.points; ++iy) {
          int64_t y0 = 0, y1 = 0;
          R ly = 0;
          const bool inside_y = locate(down, by, iy, height, &y0, &y1, &ly);
          if (!inside_y && average) continue;
          for (int64_t ix = 0; ix < across.points; ++ix) {
            int64_t x0 = 0, x1 = 0;
            R lx = 0;
            const bool inside = locate(across, bx, ix, width, &x0, &x1, &lx) && inside_y;
            if (!inside && average) continue;
            const double hy = 1 - static_cast<double>(ly), hx = 1 - static_cast<double>(lx);
            // A point outside counts as four zeros.
            const double w[] = {inside ? hy * hx : 0, inside ? hy * lx : 0, inside ? ly * hx : 0,
                                inside ? static_cast<double>(ly) * lx : 0};
            const T *p00 = image + (y0 * width + x0) * channels + c0,
                    *p01 = image + (y0 * width + x1) * channels + c0,
                    *p10 = image + (y1 * width + x0) * channels + c0,
                    *p11 = image + (y1 * width + x1) * channels + c0;
            for (int64_t c = 0; c < block; ++c) {
              const double v00 = w[0] * p00[c], v01 = w[1] * p01[c], v10 = w[2] * p10[c], v11 = w[3] * p11[c];
              if (average) {
                result[c] += v00 + v01 + v10 + v11;
              } else {
                const double v = std::max(std::max(v00, v01), std::max(v10, v11));
                result[c] = first ? v : std::max(result[c], v);
              }
            }
            first = false;
          }
        }
        for (int64_t c = 0; c < block; ++c)
          to[c0 + c] = static_cast<T>(average ? result[c] / count : result[c]);
      }
    }
  }
  return ok_status();
}

Status run_roi_align(const OpCall& call, RunContext&) {
  const auto& a = call.attrs<RoiAlignAttrs>();
  const TensorView &x = call.in(0), &rois = call.in(1), &batches = call.in(2), &y = call.out(0);
  const int64_t region = a.out_height * a.out_width * x.dims[3];
  const auto index_width = static_cast<int64_t>(byte_width(batches.dtype));
  return for_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_float(rois.dtype, [&](auto roi_tag) {
      using R = typename decltype(roi_tag)::type;
      for (int64_t r = 0; r < rois.dims[0]; ++r) {
        const int64_t batch = load_index(batches.data + r * index_width, batches.dtype);
        SINTER_RETURN_UNLESS(batch >= 0 && batch < x.dims[0],
                             error(Code::kOutOfRange, "a region is of image %a of %b", batch, x.dims[0]));
        SINTER_RETURN_IF_ERROR(align_region<T>(a, x, rois.as<R>() + r * 4, batch, y.as<T>() + r * region));
      }
      return ok_status();
    });
  });
}

}  // namespace

const Kernel kRoiAlignKernel = reference_kernel({Op::kRoiAlign, infer_roi_align, nullptr, run_roi_align});

}  // namespace sinter
