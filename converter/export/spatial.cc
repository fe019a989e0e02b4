// Rows of pools, resizing, sampling and Fourier transforms.
#include <algorithm>
#include <cmath>

#include "converter/export/rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// The windows of a pool: as the model has them, or in the form without ceil_mode where ONNX's shape inference
// would count a last window that begins in the padding.
struct PoolWindows {
  int64_t ceil_mode = 0;
  std::vector<int64_t> pads;
};

template <class Attrs>
PoolWindows windows_of(const NodeExport& n, const Attrs& a) {
  PoolWindows windows{a.ceil_mode, {a.pads.begin(), a.pads.end()}}, floor = windows;
  floor.ceil_mode = 0;
  bool counts_more = false;
  for (int i = 0; i < a.kernel.size() && a.ceil_mode != 0; ++i) {
    const size_t axis = static_cast<size_t>(i) + 1, end = static_cast<size_t>(i + a.kernel.size());
    const int64_t reach = (a.kernel[i] - 1) * a.dilations[i] + 1, results = n.result_value().dims[axis];
    const int64_t span = n.dims(0)[axis] + a.pads[i] + a.pads[i + a.kernel.size()] - reach;
    counts_more |= (span + a.strides[i] - 1) / a.strides[i] + 1 != results;
    floor.pads[end] += std::max<int64_t>(0, (results - 1) * a.strides[i] - span);
  }
  return counts_more ? floor : windows;
}

// Adds the attributes that both pools have.
template <class Attrs>
OnnxNode& set_pool(const NodeExport& n, OnnxNode& node, const Attrs& a) {
  const PoolWindows windows = windows_of(n, a);
  node.set_ints("kernel_shape", a.kernel).set_ints("strides", a.strides).set_ints("pads", windows.pads);
  for (const int64_t d : a.dilations)
    if (d != 1) return node.set_ints("dilations", a.dilations).set("ceil_mode", windows.ceil_mode);
  return node.set("ceil_mode", windows.ceil_mode);
}

}  // namespace

bool write_row(NodeExport& n, const MaxPoolAttrs& a) {
  const Axes first = channels_first(n.rank(0));
  const std::string x = n.in(0, first), y = n.out(0, first), indices = n.out(1, first);
  OnnxNode node = n.add("MaxPool", {x}, {y.empty() ? n.temporary() : y, indices});
  set_pool(n, node, a);
  if (a.storage_order != 0) node.set("storage_order", a.storage_order);
  return true;
}

bool write_row(NodeExport& n, const AvgPoolAttrs& a) {
  for (const int64_t d : a.dilations)
    if (d != 1 && !n.needs_opset(19, "AveragePool with dilations")) return false;
  if (a.count_include_pad != 0 && windows_of(n, a).pads != std::vector<int64_t>(a.pads.begin(), a.pads.end()))
    return n.refuse("its last windows are others than those of ONNX's ceil_mode", "pool without ceil_mode");
  const Axes first = channels_first(n.rank(0));
  const std::string x = n.in(0, first);
  OnnxNode node = n.add("AveragePool", {x}, {n.out(0, first)});
  set_pool(n, node, a).set("count_include_pad", a.count_include_pad);
  return true;
}

namespace {

// The sizes or scales by which a Resize has the lengths and the coordinates that the attributes state.
struct ResizeTo {
  std::vector<float> scales;  // empty: sizes
  std::vector<int64_t> sizes;
  bool exact = true;
};

ResizeTo resize_to(const NodeExport& n, const ResizeAttrs& a, const Axes& axes) {
  ResizeTo by_scale, by_size;
  for (const int axis : axes) {
    const auto length = static_cast<double>(n.dims(0)[static_cast<size_t>(axis)]);
    const double scale = a.scales[axis];
    const auto size = static_cast<double>(a.sizes[axis]);
    const auto stored = static_cast<float>(scale);
    by_scale.scales.push_back(stored);
    // Readers multiply in float32 or in float64.
    by_scale.exact &= std::floor(static_cast<float>(length) * stored) == size &&
                      std::floor(length * static_cast<double>(stored)) == size &&
                      static_cast<double>(stored) == scale;
    by_size.sizes.push_back(a.sizes[axis]);
    by_size.exact &= stored == static_cast<float>(size / length);
  }
  return by_scale.exact ? by_scale : by_size;
}

std::string floats(NodeExport& n, const std::vector<float>& values, const char* what) {
  const Dims dims{static_cast<int64_t>(values.size())};
  return n.scope().parts().initializer(Constant::of<float>(DType::kFloat32, dims, values), n.label() + what);
}

}  // namespace

bool write_row(NodeExport& n, const ResizeAttrs& a) {
  constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  constexpr const char* kCoordinates[] = {"half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
                                          "align_corners",       "asymmetric",           "tf_crop_and_resize",
                                          "tf_half_pixel_for_nn"};
  constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const auto coordinates = static_cast<ResizeCoordinates>(a.coordinates);
  if (coordinates == ResizeCoordinates::kHalfPixelSymmetric && !n.needs_opset(19, "'half_pixel_symmetric'"))
    return false;
  if (a.antialias != 0 && !n.needs_opset(18, "Resize with antialias")) return false;
  if (coordinates == ResizeCoordinates::kTfHalfPixelForNearest)
    return n.refuse("ONNX has withdrawn the coordinates 'tf_half_pixel_for_nn'",
                    "use 'half_pixel' in the model");
  const Axes axes = n.axes_of(0);
  const ResizeTo to = resize_to(n, a, axes);
  if (!to.exact)
    return n.refuse("its lengths follow from neither its scales nor its sizes", "give sizes in the model");
  std::string roi;
  if (!a.roi.empty()) {
    std::vector<float> corners;
    for (size_t end = 0; end < 2; ++end)
      for (const int axis : axes)
        corners.push_back(static_cast<float>(a.roi[static_cast<int>(end * axes.size()) + axis]));
    roi = floats(n, corners, "_roi");
  }
  const std::string x = n.in(0, axes), scales = to.scales.empty() ? "" : floats(n, to.scales, "_scales");
  const std::string sizes = to.scales.empty() ? n.ints(to.sizes) : "";
  OnnxNode node = n.add("Resize", {x, roi, scales, sizes}, {n.out(0, axes)});
  node.set("mode", std::string(kModes[a.mode]));
  node.set("coordinate_transformation_mode", std::string(kCoordinates[a.coordinates]));
  if (static_cast<ResizeMode>(a.mode) == ResizeMode::kNearest)
    node.set("nearest_mode", std::string(kNearest[a.nearest_mode]));
  if (static_cast<ResizeMode>(a.mode) == ResizeMode::kCubic) node.set_float("cubic_coeff_a", a.cubic_coeff_a);
  if (a.exclude_outside != 0) node.set("exclude_outside", a.exclude_outside);
  if (a.extrapolation_value != 0) node.set_float("extrapolation_value", a.extrapolation_value);
  if (a.antialias != 0) node.set("antialias", a.antialias);
  return true;
}

bool write_row(NodeExport& n, const GridSampleAttrs& a) {
  constexpr const char* kModes[] = {"linear", "nearest", "cubic"};
  constexpr const char* kModesBefore20[] = {"bilinear", "nearest", "bicubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  if (!n.needs_opset(16, "GridSample")) return false;
  if (n.rank(0) != 4 && !n.needs_opset(20, "GridSample of other than two spatial axes")) return false;
  const Axes first = channels_first(n.rank(0));
  const std::string x = n.in(0, first), grid = n.in(1);
  n.add("GridSample", {x, grid}, {n.out(0, first)})
      .set("mode", std::string(n.opset() >= 20 ? kModes[a.mode] : kModesBefore20[a.mode]))
      .set("padding_mode", std::string(kPaddings[a.padding_mode]))
      .set("align_corners", a.align_corners);
  return true;
}

bool write_row(NodeExport& n, const RoiAlignAttrs& a) {
  if (a.half_pixel != 0 && !n.needs_opset(16, "RoiAlign with 'half_pixel'")) return false;
  const Axes first = channels_first(4);
  const std::string x = n.in(0, first), rois = n.in(1);
  std::string batches = n.in(2);
  if (n.dtype(2) != DType::kInt64) batches = n.cast(batches, DType::kInt64);
  OnnxNode node = n.add("RoiAlign", {x, rois, batches}, {n.out(0, first)});
  node.set("mode", std::string(static_cast<RoiAlignMode>(a.mode) == RoiAlignMode::kMax ? "max" : "avg"))
      .set("output_height", a.out_height)
      .set("output_width", a.out_width)
      .set("sampling_ratio", a.sampling_ratio)
      .set_float("spatial_scale", a.spatial_scale);
  if (n.opset() >= 16)
    node.set("coordinate_transformation_mode",
             std::string(a.half_pixel != 0 ? "half_pixel" : "output_half_pixel"));
  return true;
}

bool write_row(NodeExport& n, const DftAttrs& a) {
  if (!n.needs_opset(17, "DFT")) return false;
  const std::string x = n.in(0),
                    length = a.length == 0 ? "" : n.scalar(DType::kInt64, static_cast<double>(a.length));
  const bool by_input = n.opset() >= 20;
  OnnxNode node = n.add(
      "DFT", {x, length, by_input ? n.scalar(DType::kInt64, static_cast<double>(a.axis)) : ""}, {n.out()});
  if (!by_input) node.set("axis", a.axis);
  node.set("inverse", a.inverse).set("onesided", a.onesided);
  return true;
}

}  // namespace sinter::convert
