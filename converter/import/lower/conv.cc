// Convolutions: Conv, ConvTranspose, com.microsoft FusedConv.
#include <algorithm>

#include "converter/import/lower/common.h"
#include "converter/import/lower/spatial.h"

namespace sinter::convert {
namespace {

IntList list(const std::vector<int64_t>& v) { return IntList(std::span<const int64_t>(v)); }

// A negative pad crops: the value is sliced and the pad becomes 0. x is channels-last.
ValueId crop_negative_pads(NodeLowering& n, ValueId x, std::vector<int64_t>* pads) {
  const size_t axes = pads->size() / 2;
  for (size_t i = 0; i < axes && x >= 0; ++i) {
    const int64_t before = std::max<int64_t>(0, -(*pads)[i]),
                  after = std::max<int64_t>(0, -(*pads)[axes + i]);
    if (before + after == 0) continue;
    const auto axis = static_cast<int64_t>(i) + 1;
    const int64_t left = n.dims(x)[i + 1] - before - after;
    if (left < 0) return n.refuse_shapes("negative pads crop more than the input has");
    x = n.slice(x, axis, before, left);
    (*pads)[i] = std::max<int64_t>(0, (*pads)[i]),
    (*pads)[axes + i] = std::max<int64_t>(0, (*pads)[axes + i]);
  }
  return x;
}

}  // namespace

ValueId convolution(NodeLowering& n, ValueId x, ValueId w, ValueId bias) {
  const Dims weights = n.dims(w);
  if (n.rank(x) < 3 || weights.size() != n.dims(x).size())
    return n.refuse_shapes("X {} and W {} must have the same rank, 3 or more", to_string(n.dims(x)),
                           to_string(weights));
  SpatialAttrs s;
  if (!read_spatial(n, spatial_dims(n.dims(x)), spatial_dims(weights), &s)) return kUnknown;
  const int64_t group = n.attr_int("group", 1), channels = n.dims(x)[1], outputs = weights[0];
  if (group < 1 || channels % group != 0 || outputs % group != 0 || weights[1] != channels / group)
    return n.refuse_shapes("group {} does not fit X {} and W {}", group, to_string(n.dims(x)),
                           to_string(weights));
  if (bias != kAbsent && bias >= 0 && n.dims(bias) != Dims{outputs})
    return n.refuse_shapes("the bias is {} but there are {} output channels", to_string(n.dims(bias)),
                           outputs);
  x = crop_negative_pads(n, n.to_channels_last(x), &s.pads);
  const auto rank = static_cast<int64_t>(weights.size());
  std::vector<ValueId> operands;
  ValueId y;
  if (group == channels && group > 1 && weights[1] == 1) {
    std::vector<int64_t> perm;  // [O, 1, spatial...] -> [spatial..., O]
    for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
    perm.insert(perm.end(), {0, 1});
    Dims dims = spatial_dims(weights);
    dims.push_back(outputs);
    operands = {x, n.reshape(n.transpose(w, perm), dims)};
    if (bias != kAbsent) operands.push_back(bias);
    y = n.emit(DepthwiseConvAttrs{list(s.strides), list(s.dilations), list(s.pads)}, operands);
  } else {
    operands = {x, n.to_channels_last(w)};
    if (bias != kAbsent) operands.push_back(bias);
    y = n.emit(ConvAttrs{list(s.strides), list(s.dilations), list(s.pads), group}, operands);
  }
  return n.to_channels_first(y);
}

namespace {

// Conv-1 to 22.
bool lower_conv(NodeLowering& n) { return n.output(0, convolution(n, n.input(0), n.input(1), n.input(2))); }

// Conv of x and w as ONNX has them, a residual (input 3)?, then an activation. `last`: residual and result
// are channels-last.
bool fused_convolution(NodeLowering& n, ValueId x, ValueId w, bool last) {
  ValueId y = convolution(n, x, w, n.input(2));
  if (last) y = n.to_channels_last(y);
  if (n.has_input(3)) y = n.add(y, n.input(3));
  const std::string activation = n.attr_string("activation", "");
  const std::vector<double> p = n.attr_floats("activation_params");
  if (activation == "Clip" && p.size() == 2) return n.output(0, n.emit(ClampAttrs{p[0], p[1]}, {y}));
  const auto parameter = [&](size_t i) { return i < p.size() ? std::optional(p[i]) : std::nullopt; };
  return n.output(0, activated(n, y, activation, parameter(0), parameter(1)));
}

// com.microsoft FusedConv.
bool lower_fused_conv(NodeLowering& n) { return fused_convolution(n, n.input(0), n.input(1), false); }

// com.microsoft NhwcConv and NhwcFusedConv: FusedConv of channels-last values. The weights of NhwcConv are
// channels-last too, although its documentation differs; those that only fit in ONNX's order are taken in
// that.
bool lower_nhwc_conv(NodeLowering& n) {
  const Dims d = n.dims(n.input(0)), wd = n.dims(n.input(1));
  if (d.size() != 4 || wd.size() != 4)
    return n.refuse_shapes("X {} and W {} must have rank 4", to_string(d), to_string(wd));
  const int64_t channels = d[3] / std::max<int64_t>(1, n.attr_int("group", 1));
  const std::vector<int64_t> kernel = n.attr_ints("kernel_shape");
  const auto fits = [&](size_t channel, size_t spatial) {
    return wd[channel] == channels &&
           (kernel.empty() || kernel == std::vector<int64_t>{wd[spatial], wd[spatial + 1]});
  };
  const bool last = n.node().op_type == "NhwcConv" && (fits(3, 1) || !fits(1, 2));
  const ValueId w = last ? n.to_channels_first(n.input(1)) : n.input(1);
  return fused_convolution(n, n.to_channels_first(n.input(0)), w, true);
}

// ConvTranspose-1 to 22.
bool lower_conv_transpose(NodeLowering& n) {
  const ValueId x = n.input(0), bias = n.input(2);
  ValueId w = n.input(1);
  const Dims weights = n.dims(w);  // [C, O / group, spatial...]
  if (n.rank(x) < 3 || weights.size() != n.dims(x).size())
    return n.refuse_shapes("X {} and W {} must have the same rank, 3 or more", to_string(n.dims(x)),
                           to_string(weights));
  const Dims input = spatial_dims(n.dims(x));
  const size_t axes = input.size();
  if (std::find(input.begin(), input.end(), 0) != input.end())
    return n.refuse_shapes("X {} has no elements along a spatial axis", to_string(n.dims(x)));
  // SAME pads of a transposed convolution follow from the output's size, not from read_spatial's rule.
  const std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  SpatialAttrs s;
  s.kernel = n.attr_ints("kernel_shape", spatial_dims(weights));
  s.strides = n.attr_ints("strides", std::vector<int64_t>(axes, 1));
  s.dilations = n.attr_ints("dilations", std::vector<int64_t>(axes, 1));
  s.pads = n.attr_ints("pads", std::vector<int64_t>(2 * axes, 0));
  std::vector<int64_t> extra = n.attr_ints("output_padding", std::vector<int64_t>(axes, 0));
  std::vector<int64_t> shape = n.attr_ints("output_shape");
  if (axes > 3 || s.kernel != spatial_dims(weights) || s.strides.size() != axes ||
      s.dilations.size() != axes || s.pads.size() != 2 * axes || extra.size() != axes)
    return n.refuse_shapes("its attributes do not fit X {} and W {}", to_string(n.dims(x)),
                           to_string(weights));
  if (!within_reach(n, s) || !within_reach(n, {extra, shape, {}, {}})) return false;
  if (shape.size() == axes + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (!shape.empty() && shape.size() != axes)
    return n.refuse_shapes("output_shape [{}] does not fit", fmt::join(shape, ","));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (same && shape.empty())
    for (size_t i = 0; i < axes; ++i) shape.push_back(input[i] * s.strides[i]);
  if (!shape.empty()) {
    for (size_t i = 0; i < axes; ++i) {
      const int64_t total =
          s.strides[i] * (input[i] - 1) + extra[i] + (s.kernel[i] - 1) * s.dilations[i] + 1 - shape[i];
      const int64_t less = total / 2, more = total - less;
      s.pads[i] = auto_pad == "SAME_UPPER" ? less : more;
      s.pads[axes + i] = auto_pad == "SAME_UPPER" ? more : less;
      // A requested size beyond the natural one is reached by more output padding, not by negative pads.
      if (total < 0) s.pads[i] = 0, s.pads[axes + i] = 0, extra[i] += -total;
    }
  } else if (auto_pad == "VALID") {
    s.pads.assign(2 * axes, 0);
  }
  const int64_t group = n.attr_int("group", 1), channels = n.dims(x)[1], per_group = weights[1];
  if (group < 1 || channels % group != 0 || weights[0] != channels)
    return n.refuse_shapes("group {} does not fit X {} and W {}", group, to_string(n.dims(x)),
                           to_string(weights));
  // [G * C/G, O/G, spatial...] -> [G, C/G, O/G, spatial...] -> [G, O/G, spatial..., C/G] -> [O, spatial...,
  // C/G]
  Dims split{group, channels / group, per_group};
  split.insert(split.end(), weights.begin() + 2, weights.end());
  std::vector<int64_t> perm{0, 2};
  for (size_t i = 0; i < axes; ++i) perm.push_back(static_cast<int64_t>(i) + 3);
  perm.push_back(1);
  Dims joined{group * per_group};
  joined.insert(joined.end(), weights.begin() + 2, weights.end());
  joined.push_back(channels / group);
  w = n.reshape(n.transpose(n.reshape(w, split), perm), joined);
  std::vector<ValueId> operands{n.to_channels_last(x), w};
  if (bias != kAbsent) operands.push_back(bias);
  const ValueId y = n.emit(
      ConvTransposeAttrs{list(s.strides), list(s.dilations), list(s.pads), list(extra), group}, operands);
  return n.output(0, n.to_channels_first(y));
}

}  // namespace

std::span<const OnnxOperator> conv_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Conv", 1, lower_conv, "F F F", kTakesBounded | kSumsProducts | kTwoInputs},
      {"ConvTranspose", 1, lower_conv_transpose, "F F F", kTakesBounded | kSumsProducts | kTwoInputs},
      {"FusedConv", 1, lower_fused_conv, "F F F F", kTakesBounded | kSumsProducts | kTwoInputs, kMicrosoft},
      {"NhwcConv", 1, lower_nhwc_conv, "F F F", kSumsProducts | kTwoInputs, kMicrosoft},
      {"NhwcFusedConv", 1, lower_nhwc_conv, "F F F F", kSumsProducts | kTwoInputs, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
