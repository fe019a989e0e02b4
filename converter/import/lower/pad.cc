// Pad and CenterCropPad; NonMaxSuppression.
#include <algorithm>
#include <cmath>

#include "converter/import/lower/common.h"
#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

// Pads (begins, then ends, of all axes); negative ones crop.
ValueId padded(NodeLowering& n, ValueId x, std::vector<int64_t> pads, ValueId value, PadMode mode) {
  const auto rank = static_cast<size_t>(n.rank(x));
  for (size_t axis = 0; axis < rank && x >= 0; ++axis) {
    const int64_t before = std::max<int64_t>(0, -pads[axis]),
                  after = std::max<int64_t>(0, -pads[rank + axis]);
    if (before + after > n.dims(x)[axis])
      return n.refuse_shapes("negative pads crop more than axis {} has", axis);
    x = n.slice(x, static_cast<int64_t>(axis), before, n.dims(x)[axis] - before - after);
    pads[axis] = std::max<int64_t>(0, pads[axis]),
    pads[rank + axis] = std::max<int64_t>(0, pads[rank + axis]);
  }
  if (std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; })) return x;
  const PadAttrs a{IntList(std::span<const int64_t>(pads)), static_cast<int64_t>(mode)};
  return value == kAbsent ? n.emit(a, {x}) : n.emit(a, {x, value});
}

// A fill that the type of the data does not hold makes the result a wider one; in the data's type it would be
// infinite.
void warn_of_fill(NodeLowering& n, double fill, DType result) {
  const DType data = n.dtype(n.parent().lookup(n.node().inputs[0]));
  if (!is_float(data) || !std::isfinite(fill) || std::abs(fill) <= largest_number(data)) return;
  n.warn_advising(
      fmt::format("fill with a number within {}, or cast '{}' to {} in the model", largest_number(data),
                  n.node().inputs[0], dtype_name(result)),
      "fills '{}' with {}, which is infinite in its type, {}; the result is {} and keeps the number",
      n.node().inputs[0], fill, dtype_name(data), dtype_name(result));
}

// Pad-1 (paddings), 2 (attributes), 11 to 25 (inputs; axes from 18).
bool lower_pad(NodeLowering& n) {
  ValueId x = n.input(0);
  const auto rank = static_cast<size_t>(n.rank(x));
  const auto mode = n.attr_choice<PadMode>("mode", "constant",
                                           {{"constant", PadMode::kConstant},
                                            {"reflect", PadMode::kReflect},
                                            {"edge", PadMode::kEdge},
                                            {"wrap", PadMode::kWrap}});
  if (!mode) return false;
  std::vector<int64_t> pads;
  ValueId value = kAbsent;
  if (n.opset() < 11) {
    pads = n.attr_ints(n.has_attr("paddings") ? "paddings" : "pads");
    const double fill = n.attr_float("value", 0);
    if (fill != 0 && x >= 0) {
      // A fill that the data's type cannot hold makes it a wider one, as it does where it is an operand.
      const ConstantPtr literal = Constant::scalar(DType::kFloat32, fill);
      if (!survives(*literal, n.dtype(x), false))
        x = n.cast(x,
                   is_float(n.dtype(x)) || bit_width(n.dtype(x)) <= 16 ? DType::kFloat32 : DType::kFloat64);
      value = n.scalar(n.dtype(x), fill);
    }
  } else {
    const auto given = n.constant_ints(1);
    if (!given) return n.refused() ? false : n.refuse("has no pads");
    pads = *given;
    if (n.has_input(2)) value = n.reshape(n.input(2), {});
    if (n.has_input(3)) {
      auto axes = n.constant_ints(3);
      if (!axes || !n.normalize_axes(&*axes, static_cast<int64_t>(rank))) return false;
      if (pads.size() != 2 * axes->size())
        return n.refuse_shapes("{} pads for {} axes", pads.size(), axes->size());
      std::vector<int64_t> all(2 * rank, 0);
      for (size_t i = 0; i < axes->size(); ++i) {
        all[static_cast<size_t>((*axes)[i])] = pads[i];
        all[rank + static_cast<size_t>((*axes)[i])] = pads[axes->size() + i];
      }
      pads = all;
    }
  }
  if (pads.size() != 2 * rank) return n.refuse_shapes("{} pads for X {}", pads.size(), to_string(n.dims(x)));
  if (*mode != PadMode::kConstant) value = kAbsent;
  if (const ConstantPtr fill = n.constant(value); fill && fill->size() == 1)
    warn_of_fill(n, fill->as_doubles()[0], n.dtype(x));
  return n.output(0, padded(n, x, pads, value, *mode));
}

// CenterCropPad-18.
bool lower_center_crop_pad(NodeLowering& n) {
  const ValueId x = n.input(0);
  const auto shape = n.constant_ints(1);
  if (!shape) return n.refused() ? false : n.refuse("has no shape");
  std::vector<int64_t> axes = n.attr_ints("axes");
  if (axes.empty())
    for (int64_t i = 0; i < n.rank(x); ++i) axes.push_back(i);
  if (!n.normalize_axes(&axes, n.rank(x))) return false;
  if (axes.size() != shape->size())
    return n.refuse_shapes("{} sizes for {} axes", shape->size(), axes.size());
  const auto rank = static_cast<size_t>(n.rank(x));
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const int64_t more = (*shape)[i] - n.dims(x)[axis];
    // Cropping keeps the extra element at the start's side, padding adds it at the end.
    const int64_t before = more >= 0 ? more / 2 : -((-more) / 2);
    pads[axis] = before, pads[rank + axis] = more - before;
  }
  return n.output(0, padded(n, x, pads, kAbsent, PadMode::kConstant));
}

// NonMaxSuppression-10: the number of selected boxes depends on data; a bound is planned.
bool lower_nms(NodeLowering& n) {
  NmsAttrs a;
  if (n.has_input(2)) {
    const auto most = n.constant_int(2);
    if (!most) return false;
    a.max_per_class = std::max<int64_t>(0, *most);
  }
  a.center_point_box = n.attr_int("center_point_box", 0);
  std::vector<ValueId> operands{n.input(0), n.input(1)};
  for (size_t i = 3; i < 5; ++i) operands.push_back(n.has_input(i) ? n.reshape(n.input(i), {}) : kAbsent);
  const std::vector<ValueId> results = n.emit_many(a, operands, 2);
  if (results[0] < 0) return false;
  return n.output(0, bounded(n, results[0], 0, results[1]));
}

}  // namespace

std::span<const OnnxOperator> pad_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Pad", 1, lower_pad, "A i A i", kTakesBounded},
      {"Pad", 1, lower_pad, "A i A i", kNoTraits, kMicrosoft},
      {"CenterCropPad", 18, lower_center_crop_pad, "* i", kNoTraits},
      {"NonMaxSuppression", 10, lower_nms, "F F i f f", kTakesBounded},
  };
  return kRules;
}

}  // namespace sinter::convert
