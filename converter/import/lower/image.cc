// Images and grids: GridSample, AffineGrid, RoiAlign, MaxRoiPool, DepthToSpace, SpaceToDepth, Col2Im, and the
// withdrawn ImageScaler and Crop.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "converter/import/lower/common.h"
#include "converter/import/lower/spatial.h"
#include "converter/ir/dims.h"

namespace sinter::convert {
namespace {

// GridSample-16 to 22.
bool lower_grid_sample(NodeLowering& n) {
  const auto mode = n.attr_choice<SampleMode>("mode", "linear",
                                              {{"linear", SampleMode::kLinear},
                                               {"bilinear", SampleMode::kLinear},
                                               {"nearest", SampleMode::kNearest},
                                               {"cubic", SampleMode::kCubic},
                                               {"bicubic", SampleMode::kCubic}});
  const auto padding = n.attr_choice<SamplePadding>("padding_mode", "zeros",
                                                    {{"zeros", SamplePadding::kZeros},
                                                     {"border", SamplePadding::kBorder},
                                                     {"reflection", SamplePadding::kReflection}});
  if (!mode || !padding) return false;
  GridSampleAttrs a;
  a.mode = static_cast<int64_t>(*mode), a.padding_mode = static_cast<int64_t>(*padding);
  a.align_corners = n.attr_int("align_corners", 0);
  return n.output(0, n.to_channels_first(n.emit(a, {n.to_channels_last(n.input(0)), n.input(1)})));
}

// AffineGrid-20: a constant grid of positions, transformed by theta.
bool lower_affine_grid(NodeLowering& n) {
  const auto size = n.constant_ints(1);
  if (!size) return n.refuse("has no size");
  const bool align = n.attr_int("align_corners", 0) != 0;
  const ValueId theta = n.input(0);
  if (size->size() != 4 && size->size() != 5)
    return n.refuse("size has {} numbers; 4 or 5 are supported", size->size());
  const Dims spatial(size->begin() + 2, size->end());
  const size_t axes = spatial.size();
  if (n.dims(theta) != Dims{(*size)[0], static_cast<int64_t>(axes), static_cast<int64_t>(axes) + 1})
    return n.refuse_shapes("theta is {}, which does not fit size [{}]", to_string(n.dims(theta)),
                           fmt::join(*size, ","));
  const int64_t points = element_count(spatial);
  std::vector<double> base(static_cast<size_t>(points) * (axes + 1), 1.0);
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (size_t axis = axes; axis-- > 0;) {
      const auto extent = static_cast<double>(spatial[axis]);
      const auto at = static_cast<double>(rest % spatial[axis]);
      rest /= spatial[axis];
      const double where = align ? (extent > 1 ? -1 + 2 * at / (extent - 1) : 0) : (2 * at + 1) / extent - 1;
      base[static_cast<size_t>(p) * (axes + 1) + (axes - 1 - axis)] = where;  // last spatial axis first
    }
  }
  ValueId grid =
      n.add_constant(Constant::of<double>(DType::kFloat64, {points, static_cast<int64_t>(axes) + 1}, base));
  grid = n.cast(grid, n.dtype(theta));
  const ValueId moved = n.emit(MatMulAttrs{0, 1}, {grid, theta});  // [N, points, axes]
  Dims out{(*size)[0]};
  out.insert(out.end(), spatial.begin(), spatial.end());
  out.push_back(static_cast<int64_t>(axes));
  return n.output(0, n.reshape(moved, out));
}

// RoiAlign-10 to 22.
bool lower_roi_align(NodeLowering& n) {
  RoiAlignAttrs a;
  const auto mode = n.attr_choice<RoiAlignMode>(
      "mode", "avg", {{"avg", RoiAlignMode::kAverage}, {"max", RoiAlignMode::kMax}});
  if (!mode) return false;
  a.mode = static_cast<int64_t>(*mode);
  a.out_height = n.attr_int("output_height", 1);
  a.out_width = n.attr_int("output_width", 1);
  a.sampling_ratio = n.attr_int("sampling_ratio", 0);
  a.spatial_scale = n.attr_float("spatial_scale", 1);
  const std::string shift =
      n.attr_string("coordinate_transformation_mode", n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  a.half_pixel = shift == "half_pixel";
  return n.output(0,
                  n.to_channels_first(n.emit(a, {n.to_channels_last(n.input(0)), n.input(1), n.input(2)})));
}

// Returns which positions of an axis each bin of each region covers: [regions, bins, length] of bool.
ValueId bin_members(NodeLowering& n, ValueId rois, double scale, int64_t column, int64_t bins,
                    int64_t length) {
  const DType t = n.dtype(rois);
  const auto edge = [&](int64_t c) {
    const ValueId factor = n.scalar(t, scale), v = n.mul(n.slice(rois, 1, c, 1), factor);
    return n.round(RoundFn::kFloor, {n.add(v, n.scalar(t, 0.5))});
  };
  const ValueId start = edge(column), end = edge(column + 2);
  const ValueId one = n.scalar(t, 1);
  const ValueId extent = n.emit(ClampAttrs{1, kInfinity}, {n.add(n.sub(end, start), one)});
  const ValueId width = n.div(extent, n.scalar(t, static_cast<double>(bins)));
  const ValueId index = n.reshape(n.cast(index_row(n, bins), t), {1, bins});
  const auto border = [&](ValueId at, RoundFn round) {
    const ValueId v = n.add(n.round(round, {n.mul(at, width)}), start);
    return n.unsqueeze(n.emit(ClampAttrs{0, static_cast<double>(length)}, {v}), 2);
  };
  const ValueId low = border(index, RoundFn::kFloor),
                high = border(n.add(index, n.scalar(t, 1)), RoundFn::kCeil);
  const ValueId position = n.reshape(n.cast(index_row(n, length), t), {1, 1, length});
  return n.bitwise(BitwiseFn::kAnd, {n.compare(CompareFn::kGreaterOrEqual, {position, low}),
                                     n.compare(CompareFn::kLess, {position, high})});
}

// MaxRoiPool-1: the largest element of each bin, first along rows, then along columns; an empty bin gives 0.
bool lower_max_roi_pool(NodeLowering& n) {
  const ValueId x = n.input(0), rois = n.input(1);
  const std::vector<int64_t> pooled = n.attr_ints("pooled_shape");
  const double scale = n.attr_float("spatial_scale", 1);
  const Dims d = n.dims(x), rd = n.dims(rois);
  if (d.size() != 4 || rd.size() != 2 || rd[1] != 5 || pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    return n.refuse_shapes("X {}, rois {} and pooled_shape [{}] do not fit", to_string(d), to_string(rd),
                           fmt::join(pooled, ","));
  const int64_t regions = rd[0];
  const ValueId batch = n.reshape(n.cast(n.slice(rois, 1, 0, 1), DType::kInt64), {regions});
  const ValueId lowest = n.scalar(n.dtype(x), -kInfinity);
  const auto most = [&](ValueId v, ValueId members, const Dims& shape, int64_t axis) {
    const ValueId kept = n.where({n.reshape(members, shape), v, lowest});
    return n.reduce(ReduceFn::kMax, IntList{axis}, 0, {kept});
  };
  ValueId y = n.unsqueeze(n.emit(GatherAttrs{0}, {x, batch}), 2);
  y = most(y, bin_members(n, rois, scale, 2, pooled[0], d[2]), {regions, 1, pooled[0], d[2], 1}, 3);
  const ValueId columns = bin_members(n, rois, scale, 1, pooled[1], d[3]);
  y = most(n.unsqueeze(y, 3), columns, {regions, 1, 1, pooled[1], d[3]}, 4);
  const ValueId empty = n.compare(CompareFn::kEqual, {y, lowest});
  return n.output(0, n.where({empty, n.scalar(n.dtype(x), 0), y}));
}

// DepthToSpace-1 to 13, SpaceToDepth-1 to 28.
bool lower_depth_to_space(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int64_t b = n.attr_int("blocksize", 1);
  const std::string mode = n.attr_string("mode", "DCR");
  const Dims d = n.dims(x);
  if (d.size() != 4 || b < 1 || b > 1 << 15 || d[1] % (b * b) != 0)
    return n.refuse_shapes("X {} cannot be split by blocksize {}", to_string(d), b);
  const int64_t c = d[1] / (b * b);
  ValueId y;
  if (mode == "DCR")
    y = n.transpose(n.reshape(x, {d[0], b, b, c, d[2], d[3]}), {0, 3, 4, 1, 5, 2});
  else
    y = n.transpose(n.reshape(x, {d[0], c, b, b, d[2], d[3]}), {0, 1, 4, 2, 5, 3});
  return n.output(0, n.reshape(y, {d[0], c, d[2] * b, d[3] * b}));
}

bool lower_space_to_depth(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int64_t b = n.attr_int("blocksize", 1);
  const std::string mode = n.attr_string("mode", "DCR");
  const Dims d = n.dims(x);
  if (d.size() != 4 || b < 1 || b > 1 << 15 || d[2] % b != 0 || d[3] % b != 0)
    return n.refuse_shapes("X {} cannot be split by blocksize {}", to_string(d), b);
  const ValueId split = n.reshape(x, {d[0], d[1], d[2] / b, b, d[3] / b, b});
  const ValueId y =
      mode == "CRD" ? n.transpose(split, {0, 1, 3, 5, 2, 4}) : n.transpose(split, {0, 3, 5, 1, 2, 4});
  return n.output(0, n.reshape(y, {d[0], d[1] * b * b, d[2] / b, d[3] / b}));
}

// Col2Im-18: columns are added back into a zero image at constant places.
bool lower_col2im(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto image = n.constant_ints(1), block = n.constant_ints(2);
  if (!image || !block) return n.refuse("image_shape and block_shape must be given");
  constexpr int64_t kMostPixels = 1 << 28;
  const size_t axes = image->size();
  const auto strides = n.attr_ints("strides", std::vector<int64_t>(axes, 1));
  const auto dilations = n.attr_ints("dilations", std::vector<int64_t>(axes, 1));
  const auto pads = n.attr_ints("pads", std::vector<int64_t>(2 * axes, 0));
  const Dims d = n.dims(x);
  if (axes == 0 || block->size() != axes || strides.size() != axes || dilations.size() != axes ||
      pads.size() != 2 * axes || d.size() != 3)
    return n.refuse_shapes("its attributes do not fit X {}", to_string(d));
  if (!within_reach(n, {*block, strides, dilations, pads})) return false;
  for (size_t i = 0; i < axes; ++i)
    if ((*block)[i] < 1 || strides[i] < 1 || dilations[i] < 1 || (*image)[i] < 0 || (*image)[i] > kMostPixels)
      return n.refuse("image, blocks, strides and dilations must be positive, the image not beyond {}",
                      kMostPixels);
  if (!plausible_dims(DType::kInt64, *block) || !plausible_dims(DType::kInt64, *image))
    return n.refuse("an image of [{}] in blocks of [{}] is too large", fmt::join(*image, ","),
                    fmt::join(*block, ","));
  const int64_t cells = std::accumulate(block->begin(), block->end(), int64_t{1}, std::multiplies<int64_t>());
  std::vector<int64_t> counts;
  for (size_t i = 0; i < axes; ++i)
    counts.push_back(
        ((*image)[i] + pads[i] + pads[axes + i] - dilations[i] * ((*block)[i] - 1) - 1) / strides[i] + 1);
  if (!plausible_dims(DType::kInt64, counts))
    return n.refuse_shapes("no block fits an image of [{}]", fmt::join(*image, ","));
  const int64_t places = element_count(counts), pixels = element_count(*image);
  if (cells < 1 || d[1] % cells != 0 || d[2] != places)
    return n.refuse_shapes("X {} does not fit blocks [{}] over an image [{}]", to_string(d),
                           fmt::join(*block, ","), fmt::join(*image, ","));
  const int64_t channels = d[1] / cells;
  // Columns that fall into the padding are added to one pixel more, which is then cut off.
  std::vector<int64_t> targets(static_cast<size_t>(cells * places));
  for (int64_t cell = 0; cell < cells; ++cell)
    for (int64_t place = 0; place < places; ++place) {
      int64_t target = 0, scale = 1, c = cell, p = place;
      bool inside = true;
      for (size_t axis = axes; axis-- > 0;) {
        const int64_t at =
            (p % counts[axis]) * strides[axis] + (c % (*block)[axis]) * dilations[axis] - pads[axis];
        p /= counts[axis], c /= (*block)[axis];
        inside &= at >= 0 && at < (*image)[axis];
        target += at * scale;
        scale *= (*image)[axis];
      }
      targets[static_cast<size_t>(cell * places + place)] = inside ? target : pixels;
    }
  const int64_t rows = d[0] * channels;
  ValueId index = n.add_constant(Constant::of<int64_t>(DType::kInt64, {1, cells * places}, targets));
  index = n.broadcast(index, {rows, cells * places});
  const ValueId zero =
      n.emit(BroadcastAttrs{IntList{rows, pixels + 1}}, {n.reshape(n.scalar(n.dtype(x), 0), {1, 1})});
  ValueId y = n.emit(ScatterElementsAttrs{1, static_cast<int64_t>(ScatterReduction::kAdd)},
                     {zero, index, n.reshape(x, {rows, cells * places})});
  y = n.slice(y, 1, 0, pixels);
  Dims out{d[0], channels};
  out.insert(out.end(), image->begin(), image->end());
  return n.output(0, n.reshape(y, out));
}

// Withdrawn, opset below 10: x * scale + bias per channel.
bool lower_image_scaler(NodeLowering& n) {
  const ValueId x = n.input(0);
  const double scale = n.attr_float("scale", 1);
  const std::vector<double> bias = n.attr_floats("bias");
  const DType t = n.dtype(x);
  if (n.rank(x) != 4 || (!bias.empty() && static_cast<int64_t>(bias.size()) != n.dims(x)[1]))
    return n.refuse_shapes("a bias of {} channels for X {}", bias.size(), to_string(n.dims(x)));
  ValueId y = n.mul(x, n.scalar(t, scale));
  if (!bias.empty()) {
    const ValueId b = n.add_constant(
        Constant::of<double>(DType::kFloat64, {1, static_cast<int64_t>(bias.size()), 1, 1}, bias));
    y = n.add(y, n.cast(b, t));
  }
  return n.output(0, y);
}

// Crop-1: border is left, top, right, bottom; scale, if given, is the result's height and width.
bool lower_crop(NodeLowering& n) {
  const ValueId x = n.input(0);
  const std::vector<int64_t> border = n.attr_ints("border"), scale = n.attr_ints("scale");
  const Dims d = n.dims(x);
  if (d.size() != 4 || border.size() != 4 || (!scale.empty() && scale.size() != 2))
    return n.refuse_shapes("border [{}] for X {}", fmt::join(border, ","), to_string(d));
  const int64_t height = scale.empty() ? d[2] - border[1] - border[3] : scale[0];
  const int64_t width = scale.empty() ? d[3] - border[0] - border[2] : scale[1];
  if (height < 0 || width < 0 || border[0] < 0 || border[1] < 0 || border[1] + height > d[2] ||
      border[0] + width > d[3])
    return n.refuse_shapes("border [{}] crops more than X {} has", fmt::join(border, ","), to_string(d));
  return n.output(0, n.slice(n.slice(x, 2, border[1], height), 3, border[0], width));
}

// com.microsoft: boxes [R, 4] (y1, x1, y2, x2, in units of the image's last row and column) of images
// batch_indices [R], resized so that corners meet corners -> [R, C, height, width]. Places outside the image
// give extrapolation_value.
bool lower_crop_and_resize(NodeLowering& n) {
  if (!n.has_input(3)) return n.refuse("needs four inputs");
  const std::string mode = n.attr_string("mode", "bilinear");
  const double outside = n.attr_float("extrapolation_value", 0);
  if (mode != "bilinear" && mode != "nearest") return n.refuse("mode '{}' is not known", mode);
  const auto crop = n.constant_ints(3);
  if (!crop) return false;
  const ValueId x = n.input(0), rois = n.input(1);
  const Dims d = n.dims(x), rd = n.dims(rois);
  constexpr int64_t kMostPixels = 1 << 16;
  if (d.size() != 4 || rd.size() != 2 || rd[1] != 4 || n.dims(n.input(2)) != Dims{rd[0]} ||
      crop->size() != 2 || (*crop)[0] < 1 || (*crop)[1] < 1 || (*crop)[0] > kMostPixels ||
      (*crop)[1] > kMostPixels || d[2] < 1 || d[3] < 1)
    return n.refuse_shapes("X {}, rois {}, batch_indices {} and crop_size [{}] do not fit", to_string(d),
                           to_string(rd), to_string(n.dims(n.input(2))), fmt::join(*crop, ","));
  const int64_t regions = rd[0];
  const DType t = n.dtype(rois);
  struct Axis {
    ValueId low, high;  // positions, int64
    ValueId share;      // of the high one
    ValueId inside;
  } axes[2];
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t count = (*crop)[static_cast<size_t>(axis)], length = d[static_cast<size_t>(2 + axis)];
    const double last = static_cast<double>(length - 1);
    // A single sampling place is in the middle.
    std::vector<double> shares(static_cast<size_t>(count), 0.5);
    for (int64_t i = 0; i < count && count > 1; ++i)
      shares[static_cast<size_t>(i)] = static_cast<double>(i) / static_cast<double>(count - 1);
    const ValueId share = n.cast(
        n.add_constant(Constant::of<double>(DType::kFloat64, {1, count}, std::span<const double>(shares))),
        t);
    const ValueId begin = n.slice(rois, 1, axis, 1), end = n.slice(rois, 1, axis + 2, 1);
    const ValueId most = n.scalar(t, last);
    const ValueId place = n.mul(n.add(begin, n.mul(n.sub(end, begin), share)), most);
    Axis& a = axes[axis];
    a.inside = n.emit(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)},
                      {n.compare(CompareFn::kGreaterOrEqual, {place, n.scalar(t, 0)}),
                       n.compare(CompareFn::kLessOrEqual, {place, n.scalar(t, last)})});
    const ValueId within = n.where({a.inside, place, n.scalar(t, 0)});
    const auto position = [&](RoundFn fn) { return n.round(fn, {within}); };
    if (mode == "nearest") {
      // Halves are rounded up.
      a.low = a.high =
          n.cast(n.emit(ClampAttrs{0, last}, {n.round(RoundFn::kFloor, {n.add(within, n.scalar(t, 0.5))})}),
                 DType::kInt64);
    } else {
      const ValueId low = position(RoundFn::kFloor);
      a.share = n.sub(within, low);
      a.low = n.cast(low, DType::kInt64), a.high = n.cast(position(RoundFn::kCeil), DType::kInt64);
    }
  }
  const int64_t height = (*crop)[0], width = (*crop)[1];
  const Dims grid{regions, height, width, 1};
  const ValueId image = n.to_channels_last(x);
  const ValueId batch = n.broadcast(n.reshape(n.cast(n.input(2), DType::kInt64), {regions, 1, 1, 1}), grid);
  const auto rows = [&](ValueId v) { return n.reshape(v, {regions, height, 1, 1}); };
  const auto columns = [&](ValueId v) { return n.reshape(v, {regions, 1, width, 1}); };
  const auto pixels = [&](ValueId y_at, ValueId x_at) {
    const ValueId index =
        n.emit(ConcatAttrs{3}, {batch, n.broadcast(rows(y_at), grid), n.broadcast(columns(x_at), grid)});
    return n.emit(GatherNdAttrs{0}, {image, index});
  };
  ValueId y = pixels(axes[0].low, axes[1].low);
  if (mode == "bilinear") {
    const DType own = n.dtype(x);
    const auto between = [&](ValueId a, ValueId b, ValueId share) {
      const ValueId part = n.cast(share, own);
      return n.add(a, n.mul(n.sub(b, a), part));
    };
    const ValueId share = columns(axes[1].share);
    y = between(between(y, pixels(axes[0].low, axes[1].high), share),
                between(pixels(axes[0].high, axes[1].low), pixels(axes[0].high, axes[1].high), share),
                rows(axes[0].share));
  }
  const ValueId inside = n.bitwise(BitwiseFn::kAnd, {rows(axes[0].inside), columns(axes[1].inside)});
  return n.output(0, n.to_channels_first(n.where({inside, y, n.scalar(n.dtype(x), outside)})));
}

}  // namespace

std::span<const OnnxOperator> image_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"GridSample", 16, lower_grid_sample, "F *", kTakesBounded},
      {"GridSample", 1, lower_grid_sample, "", kTakesBounded, kMicrosoft},
      {"AffineGrid", 20, lower_affine_grid, "F i", kNoTraits},
      {"RoiAlign", 10, lower_roi_align, "F F i", kTakesBounded},
      {"MaxRoiPool", 1, lower_max_roi_pool, "F F", kNoTraits},
      {"DepthToSpace", 1, lower_depth_to_space, "", kNoTraits},
      {"SpaceToDepth", 1, lower_space_to_depth, "", kNoTraits},
      {"Col2Im", 18, lower_col2im, "N i i", kNoTraits},
      {"ImageScaler", 1, lower_image_scaler, "", kNoTraits},
      {"Crop", 1, lower_crop, "", kNoTraits},
      {"CropAndResize", 1, lower_crop_and_resize, "F F i i", kNoTraits, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
