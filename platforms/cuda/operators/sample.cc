// GridSample, RoiAlign.
#include "platforms/cuda/operators.h"
#include "platforms/cuda/operators/move.h"
#include "runtime/core/op_enums.h"

namespace sinter::cuda {
namespace {

constexpr int64_t kLongestAxis = int64_t{1} << 29;

Status check_image(const TensorView& x, const TensorView& places, const TensorView& y) {
  SINTER_RETURN_UNLESS(is_wide_float(x.dtype) && is_wide_float(places.dtype),
                       unsupported("elements are neither float32 nor float64"));
  SINTER_RETURN_UNLESS(x.dense() && places.dense() && y.dense(), unsupported("operands are not dense"));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(x.shape(), &box));
  SINTER_RETURN_IF_ERROR(box_of(places.shape(), &box));
  for (const int64_t d : x.shape())
    SINTER_RETURN_UNLESS(d < kLongestAxis, unsupported("an axis is too long"));
  return ok_status();
}

// Returns the channels that a thread computes.
int group_of(const TensorView& x, const TensorView& places) {
  const bool grouped =
      x.dtype == DType::kFloat32 && places.dtype == DType::kFloat32 && x.dims[x.rank - 1] % kSampleGroup == 0;
  return grouped ? kSampleGroup : 1;
}

}  // namespace

Status lower_GridSample(Lowering& l) {
  const auto& attrs = l.attrs<GridSampleAttrs>();
  const TensorView &x = l.in(0), &grid = l.in(1), &y = l.out(0);
  SINTER_RETURN_IF_ERROR(check_image(x, grid, y));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &box));
  if (box.size == 0) return ok_status();
  GridSampleArguments a;
  a.axes = x.rank - 2;
  SINTER_RETURN_UNLESS(a.axes <= 3, unsupported("more than three spatial axes"));
  a.x = x.data, a.grid = grid.data, a.y = y.data;
  int64_t positions = 1;
  for (int i = 0; i < a.axes; ++i) {
    a.in[3 - a.axes + i] = static_cast<int32_t>(x.dims[1 + i]);
    positions *= y.dims[1 + i];
  }
  a.group = group_of(x, grid);
  a.positions = Divider(positions), a.pieces = Divider(x.dims[x.rank - 1] / a.group);
  a.size = box.size / static_cast<uint32_t>(a.group);
  a.kind = static_cast<GridSampleKind>(attrs.mode), a.padding = static_cast<GridPadding>(attrs.padding_mode);
  a.align_corners = static_cast<int32_t>(attrs.align_corners);
  a.x_double = x.dtype == DType::kFloat64, a.grid_double = grid.dtype == DType::kFloat64;
  return l.launch<Kernel::k_grid_sample>({.blocks = {blocks_for(a.size, threads_of(Kernel::k_grid_sample))}},
                                         a);
}

Status lower_RoiAlign(Lowering& l) {
  const auto& attrs = l.attrs<RoiAlignAttrs>();
  const TensorView &x = l.in(0), &rois = l.in(1), &images = l.in(2), &y = l.out(0);
  SINTER_RETURN_IF_ERROR(check_image(x, rois, y));
  SINTER_RETURN_UNLESS(images.dense(), unsupported("operands are not dense"));
  SINTER_RETURN_UNLESS(x.dims[3] > 0, unsupported("the feature map has no channels"));
  Box box;
  SINTER_RETURN_IF_ERROR(box_of(y.shape(), &box));
  if (box.size == 0) return ok_status();
  RoiAlignArguments a;
  a.x = x.data, a.rois = rois.data, a.images = images.data, a.y = y.data;
  a.image_count = static_cast<int32_t>(x.dims[0]);
  a.height = static_cast<int32_t>(x.dims[1]), a.width = static_cast<int32_t>(x.dims[2]);
  a.channels = static_cast<int32_t>(x.dims[3]);
  a.group = group_of(x, rois);
  a.bins_down = Divider(attrs.out_height), a.bins_across = Divider(attrs.out_width);
  a.pieces = Divider(a.channels / a.group);
  a.size = box.size / static_cast<uint32_t>(a.group);
  a.average = attrs.mode == static_cast<int64_t>(RoiAlignMode::kAverage);
  a.half_pixel = static_cast<int32_t>(attrs.half_pixel),
  a.points = static_cast<int32_t>(attrs.sampling_ratio);
  a.scale = attrs.spatial_scale;
  a.index_width = static_cast<int32_t>(byte_width(images.dtype));
  a.x_double = x.dtype == DType::kFloat64, a.rois_double = rois.dtype == DType::kFloat64;
  a.fault = l.fault();
  return l.launch<Kernel::k_roi_align>({.blocks = {blocks_for(a.size, threads_of(Kernel::k_roi_align))}}, a);
}

}  // namespace sinter::cuda
