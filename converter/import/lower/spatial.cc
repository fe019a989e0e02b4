#include "converter/import/lower/spatial.h"

namespace sinter::convert {

Dims spatial_dims(const Dims& dims) { return dims.size() < 2 ? Dims{} : Dims(dims.begin() + 2, dims.end()); }

bool read_spatial(NodeLowering& n, const Dims& input, std::vector<int64_t> kernel, SpatialAttrs* out) {
  const size_t axes = input.size();
  const std::vector<int64_t> declared = n.attr_ints("kernel_shape");
  if (kernel.empty()) kernel = declared;
  if (!declared.empty() && declared != kernel)
    return n.refuse_shapes("kernel_shape [{}] contradicts the weights' [{}]", fmt::join(declared, ","),
                           fmt::join(kernel, ","));
  out->kernel = kernel;
  out->strides = n.attr_ints("strides", std::vector<int64_t>(axes, 1));
  out->dilations = n.attr_ints("dilations", std::vector<int64_t>(axes, 1));
  out->pads = n.attr_ints("pads", std::vector<int64_t>(2 * axes, 0));
  if (axes < 1 || axes > 3) return n.refuse_shapes("{} spatial axes; 1 to 3 are supported", axes);
  if (kernel.size() != axes || out->strides.size() != axes || out->dilations.size() != axes ||
      out->pads.size() != 2 * axes)
    return n.refuse_shapes(
        "kernel [{}], strides [{}], dilations [{}] and pads [{}] do not fit {} spatial axes",
        fmt::join(kernel, ","), fmt::join(out->strides, ","), fmt::join(out->dilations, ","),
        fmt::join(out->pads, ","), axes);
  for (size_t i = 0; i < axes; ++i)
    if (kernel[i] < 1 || out->strides[i] < 1 || out->dilations[i] < 1)
      return n.refuse("kernel, strides and dilations must be positive");
  if (!within_reach(n, {kernel, out->strides, out->dilations, out->pads})) return false;
  const std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  if (auto_pad == "NOTSET" || auto_pad.empty()) return true;
  if (auto_pad == "VALID") {
    out->pads.assign(2 * axes, 0);
    return true;
  }
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER")
    return n.refuse("auto_pad '{}' is not known", auto_pad);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (kernel[i] - 1) * out->dilations[i] + 1;
    const int64_t results = (input[i] + out->strides[i] - 1) / out->strides[i];
    const int64_t total = std::max<int64_t>(0, (results - 1) * out->strides[i] + reach - input[i]);
    const int64_t less = total / 2, more = total - less;
    out->pads[i] = auto_pad == "SAME_UPPER" ? less : more;
    out->pads[axes + i] = auto_pad == "SAME_UPPER" ? more : less;
  }
  return true;
}

bool within_reach(NodeLowering& n, const SpatialAttrs& attrs) {
  for (const auto* list : {&attrs.kernel, &attrs.strides, &attrs.dilations, &attrs.pads})
    for (const int64_t v : *list)
      if (v < -(1 << 20) || v > 1 << 20) return n.refuse("{} is beyond what a window can be", v);
  return true;
}

}  // namespace sinter::convert
