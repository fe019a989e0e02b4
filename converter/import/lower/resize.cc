// Resize and Upsample.
#include <algorithm>
#include <cmath>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/resize_bounded.h"
#include "converter/import/lower/spatial.h"

namespace sinter::convert {
namespace {

// The length of an axis that is scaled, as ONNX's shape inference computes it, in float32: 5 elements by 2.8
// are 14.
double scaled_length(int64_t length, double scale) {
  return static_cast<double>(static_cast<float>(length) * static_cast<float>(scale));
}

// Whole elements of an axis; -1 for what no axis can have.
int64_t length_of(double elements) {
  constexpr double kMost = 1ll << 40;
  return elements >= 0 && elements < kMost ? static_cast<int64_t>(std::floor(elements)) : -1;
}

std::optional<ResizeMode> resize_mode(NodeLowering& n) {
  return n.attr_choice<ResizeMode>("mode", "nearest",
                                   {{"nearest", ResizeMode::kNearest},
                                    {"linear", ResizeMode::kLinear},
                                    {"bilinear", ResizeMode::kLinear},
                                    {"cubic", ResizeMode::kCubic}});
}

// The attributes of a Resize that do not depend on its operands.
std::optional<ResizeAttrs> resize_attributes(NodeLowering& n) {
  using Coordinates = ResizeCoordinates;
  const bool old = n.opset() < 11;
  const auto mode = resize_mode(n);
  const auto coordinates =
      n.attr_choice<Coordinates>("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
                                 {{"half_pixel", Coordinates::kHalfPixel},
                                  {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
                                  {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
                                  {"align_corners", Coordinates::kAlignCorners},
                                  {"asymmetric", Coordinates::kAsymmetric},
                                  {"tf_crop_and_resize", Coordinates::kTfCropAndResize},
                                  {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNearest}});
  const auto nearest = n.attr_choice<NearestMode>("nearest_mode", old ? "floor" : "round_prefer_floor",
                                                  {{"round_prefer_floor", NearestMode::kRoundPreferFloor},
                                                   {"", NearestMode::kRoundPreferFloor},
                                                   {"round_prefer_ceil", NearestMode::kRoundPreferCeil},
                                                   {"floor", NearestMode::kFloor},
                                                   {"ceil", NearestMode::kCeil}});
  if (!mode || !coordinates || !nearest) return std::nullopt;
  ResizeAttrs a;
  a.mode = static_cast<int64_t>(*mode);
  a.coordinates = static_cast<int64_t>(*coordinates);
  a.nearest_mode = static_cast<int64_t>(*nearest);
  a.cubic_coeff_a = n.attr_float("cubic_coeff_a", -0.75);
  a.exclude_outside = n.attr_int("exclude_outside", 0);
  a.extrapolation_value = n.attr_float("extrapolation_value", 0);
  a.antialias = n.attr_int("antialias", 0);
  return a;
}

// Emits a Resize; spatial values are resized channels-last, where the kernels are.
ValueId emit_resize(NodeLowering& n, ValueId x, ResizeAttrs a) {
  const bool spatial = n.rank(x) >= 3 && a.sizes[0] == n.dims(x)[0] && a.sizes[1] == n.dims(x)[1];
  if (!spatial) return n.emit(a, {x});
  const auto last = [](auto list) {
    auto out = list;
    for (int i = 1; i + 1 < list.size(); ++i) out[i] = list[i + 1];
    out[list.size() - 1] = list[1];
    return out;
  };
  a.sizes = last(a.sizes);
  a.scales = last(a.scales);
  if (!a.roi.empty()) {
    const int rank = a.roi.size() / 2;
    FloatList begins, ends;
    for (int i = 0; i < rank; ++i) begins.push(a.roi[i]), ends.push(a.roi[rank + i]);
    begins = last(begins), ends = last(ends);
    a.roi = begins;
    for (const double e : ends) a.roi.push(e);
  }
  return n.to_channels_first(n.emit(a, {n.to_channels_last(x)}));
}

// ONNX's tests and its reference place the last corner by the scaled length, even with a fraction; its text,
// onnxruntime and PyTorch by the length that the result has.
void warn_of_two_readings(NodeLowering& n, int axis, double scaled, int64_t length) {
  if (length < 2 || std::abs(scaled - static_cast<double>(length)) < 1e-5 * scaled) return;
  n.parent().diagnostics().warn(
      n.node().name, n.node().op_type,
      fmt::format(
          "align_corners with a scale that makes {:.6g} elements of axis {}: corners are aligned as in "
          "ONNX's tests, by {:.6g}; onnxruntime takes the length {}",
          scaled, axis, scaled, length),
      "give sizes in place of scales, which have one meaning");
}

// The request of a Resize, along some axes: scales or sizes, one of them empty, and the part of the operand
// that is resized, whole where `roi` is empty.
struct ResizeRequest {
  std::vector<int64_t> axes;
  std::vector<double> roi, scales;
  std::vector<int64_t> sizes;
  std::vector<std::pair<int64_t, LengthId>> open;  // axes whose new size depends on data
  bool crops = false;
  std::string policy;
};

// Resize-10 (scales as input 1) and 11 to 19 (roi, scales, sizes). False: refused.
bool read_request(NodeLowering& n, ResizeRequest* r) {
  const ValueId x = n.input(0);
  const Dims dims = n.dims(x);
  const bool old = n.opset() < 11;
  r->policy = n.attr_string("keep_aspect_ratio_policy", "stretch");
  r->axes = n.attr_ints("axes");
  if (r->axes.empty())
    for (int64_t i = 0; i < n.rank(x); ++i) r->axes.push_back(i);
  if (!n.normalize_axes(&r->axes, n.rank(x))) return false;
  const size_t count = r->axes.size(), scales_at = old ? 1 : 2;
  if (n.has_input(scales_at) && n.size(n.input(scales_at)) > 0) {
    const auto given = n.constant_doubles(scales_at);
    if (!given) return false;
    r->scales = *given;
  }
  if (n.has_input(3) && n.size(n.input(3)) > 0) {
    // A bounded axis may keep its length; others may be given one.
    Lengths& lengths = n.parent().lengths();
    const auto items = lengths.items(n.input(3));
    for (size_t i = 0; items && items->size() == count && i < count; ++i) {
      const int64_t axis = r->axes[i];
      const auto known = lengths.known((*items)[i]);
      if (!known && (*items)[i] != lengths.of_axis(x, axis)) r->open.emplace_back(axis, (*items)[i]);
      r->sizes.push_back(known ? *known : dims[static_cast<size_t>(axis)]);
    }
    if (r->sizes.size() != count) {
      const auto given = n.constant_ints(3);
      if (!given) return false;
      r->sizes = *given;
    }
  }
  if (!r->open.empty() && (r->policy != "stretch" || r->crops))
    return n.refuse("its sizes depend on data, with keep_aspect_ratio_policy '{}' and coordinates '{}'",
                    r->policy, n.attr_string("coordinate_transformation_mode", "half_pixel"));
  // The roi means nothing in the other modes, yet many files give one.
  if (!old && n.has_input(1) && r->crops) {
    const auto given = n.constant_doubles(1);
    if (!given) return n.refuse("tf_crop_and_resize needs a constant roi");
    r->roi = *given;
    if (r->roi.size() != 2 * count)
      return n.refuse_shapes("roi has {} numbers for {} axes", r->roi.size(), count);
  }
  if (!old && r->crops && r->roi.empty()) return n.refuse("tf_crop_and_resize needs a roi");
  if (r->scales.empty() == r->sizes.empty()) return n.refuse("exactly one of scales and sizes must be given");
  if (const size_t given = r->scales.size() + r->sizes.size(); given != count)
    return n.refuse_shapes("{} scales or sizes for {} axes", given, count);
  return true;
}

// The common scale of keep_aspect_ratio_policy; 0: each axis has its own.
double common_scale(const ResizeRequest& r, const Dims& dims) {
  double kept = 0;
  for (size_t i = 0; i < r.sizes.size() && r.policy != "stretch"; ++i) {
    const double s =
        static_cast<double>(r.sizes[i]) / static_cast<double>(dims[static_cast<size_t>(r.axes[i])]);
    kept = i == 0 ? s : r.policy == "not_larger" ? std::min(kept, s) : std::max(kept, s);
  }
  return kept;
}

bool lower_resize(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto attributes = resize_attributes(n);
  if (!attributes) return false;
  ResizeAttrs a = *attributes;
  const auto coordinates = static_cast<ResizeCoordinates>(a.coordinates);
  ResizeRequest r;
  r.crops = coordinates == ResizeCoordinates::kTfCropAndResize;
  if (!read_request(n, &r)) return false;
  const Dims dims = n.dims(x);
  const auto rank = static_cast<int>(dims.size());
  for (const int64_t dim : dims) a.sizes.push(dim), a.scales.push(1);
  for (int i = 0; i < 2 * rank && !r.roi.empty(); ++i) a.roi.push(i < rank ? 0 : 1);
  const double kept = common_scale(r, dims);
  for (size_t i = 0; i < r.axes.size(); ++i) {
    const auto axis = static_cast<int>(r.axes[i]);
    const auto in = static_cast<double>(dims[static_cast<size_t>(axis)]);
    if (!r.roi.empty()) a.roi[axis] = r.roi[i], a.roi[rank + axis] = r.roi[r.axes.size() + i];
    if (!r.scales.empty()) {
      if (!(r.scales[i] > 0)) return n.refuse("a scale of {}", r.scales[i]);
      a.scales[axis] = r.scales[i];
      // The scale counts for the whole axis, whatever the roi is: ONNX's shape inference and reference and
      // onnxruntime read it so, against ONNX's text.
      a.sizes[axis] = length_of(scaled_length(dims[static_cast<size_t>(axis)], r.scales[i]));
    } else if (kept > 0) {
      a.scales[axis] = kept;
      a.sizes[axis] = length_of(kept * in + 0.5);
    } else {
      a.sizes[axis] = r.sizes[i];
      a.scales[axis] = static_cast<double>(r.sizes[i]) / in;
    }
    if (a.sizes[axis] < 0 || in == 0)
      return n.refuse_shapes("axis {} of size {} cannot be resized to {}", axis, in, a.sizes[axis]);
    if (coordinates == ResizeCoordinates::kAlignCorners)
      warn_of_two_readings(n, axis, in * a.scales[axis], a.sizes[axis]);
  }
  const bool fixed = std::equal(dims.begin(), dims.end(), a.sizes.begin());
  ValueId y = !r.open.empty() && fixed ? x : emit_resize(n, x, a);
  for (const auto& [axis, size] : r.open) y = resize_axis_to(n, y, axis, size, a);
  return n.output(0, y);
}

// Upsample-7 (attribute) and 9 (input): Resize by the old rule.
bool lower_upsample(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto m = resize_mode(n);
  if (!m) return false;
  std::vector<double> scales = n.attr_floats("scales");
  if (n.has_attr("height_scale"))
    scales = {1, 1, n.attr_float("height_scale", 1), n.attr_float("width_scale", 1)};
  if (scales.empty()) {
    const auto given = n.constant_doubles(1);
    if (!given) return n.refuse("has no scales");
    scales = *given;
  }
  if (scales.size() != n.dims(x).size())
    return n.refuse_shapes("{} scales for X {}", scales.size(), to_string(n.dims(x)));
  ResizeAttrs a;
  a.mode = static_cast<int64_t>(*m);
  a.coordinates = static_cast<int64_t>(ResizeCoordinates::kAsymmetric);
  a.nearest_mode = static_cast<int64_t>(NearestMode::kFloor);
  for (size_t i = 0; i < scales.size(); ++i) {
    if (!(scales[i] > 0)) return n.refuse("a scale of {}", scales[i]);
    a.scales.push(scales[i]);
    a.sizes.push(length_of(scaled_length(n.dims(x)[i], scales[i])));
    if (a.sizes[static_cast<int>(i)] < 0)
      return n.refuse_shapes("axis {} of {} cannot be scaled by {}", i, to_string(n.dims(x)), scales[i]);
  }
  return n.output(0, emit_resize(n, x, a));
}

}  // namespace

std::span<const OnnxOperator> resize_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Resize", 10, lower_resize, "N * * i", kTakesBounded},
      {"Upsample", 1, lower_upsample, "N *", kTakesBounded},
  };
  return kRules;
}

}  // namespace sinter::convert
