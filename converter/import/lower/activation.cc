// Activation functions, those of com.microsoft among them.
#include <cmath>
#include <limits>

#include "converter/import/lower/common.h"
#include "converter/types/representable.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

template <class Attrs>
bool lower_plain(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(0, n.emit(Attrs{}, {n.input(0)}));
}

bool lower_relu(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(0, n.emit(ClampAttrs{0, kInfinity}, {n.input(0)}));
}

// Clip-1/6 have attributes, later ones inputs. A bound that is constant goes into the op; otherwise Max, then
// Min.
bool lower_clip(NodeLowering& n) {
  ignore_legacy(n);
  ValueId x = n.input(0);
  if (n.opset() < 11 && n.input_count() == 1) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    ClampAttrs a{n.attr_float("min", -kInfinity), n.attr_float("max", kInfinity)};
    // The schema's defaults, often written out: no bound.
    if (a.min == -kLargest) a.min = -kInfinity;
    if (a.max == kLargest) a.max = kInfinity;
    // Bounds that the data's type cannot hold make it a floating-point one, as they do when they are
    // operands.
    const auto cut = [](double v) { return std::isfinite(v) && v != std::trunc(v); };
    if (!is_float(n.dtype(x)) && (cut(a.min) || cut(a.max)))
      x = n.cast(x, bit_width(n.dtype(x)) > 16 ? DType::kFloat64 : DType::kFloat32);
    return n.output(0, n.emit(a, {x}));
  }
  ClampAttrs a{-kInfinity, kInfinity};
  bool fused = true;
  double* const bounds[] = {&a.min, &a.max};
  for (size_t i = 1; i <= 2; ++i) {
    if (!n.has_input(i)) continue;
    if (n.size(n.input(i)) != 1) return n.refuse("input {} must have one element", i);
    const ConstantPtr c = n.constant(n.input(i));
    const double v = c ? c->as_doubles()[0] : 0;
    // Beyond 2^53 a double is not every integer.
    if (!c || std::isnan(v) || (!is_float(n.dtype(x)) && std::isfinite(v) && std::abs(v) > 9e15))
      fused = false;
    else
      *bounds[i - 1] = v;
  }
  if (fused && n.dtype(x) != DType::kBool) {
    // The type's own ends (exported for "no bound") bound nothing.
    if (n.dtype(x) == DType::kFloat32) {
      if (a.min == -std::numeric_limits<float>::max()) a.min = -kInfinity;
      if (a.max == std::numeric_limits<float>::max()) a.max = kInfinity;
    }
    return n.output(0, n.emit(a, {x}));
  }
  if (n.has_input(1)) x = n.emit(MaxAttrs{}, {x, n.reshape(n.input(1), {})});
  if (n.has_input(2)) x = n.emit(MinAttrs{}, {x, n.reshape(n.input(2), {})});
  return n.output(0, x);
}

bool lower_hard_sigmoid(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(
      0, n.emit(HardSigmoidAttrs{n.attr_float("alpha", 0.2), n.attr_float("beta", 0.5)}, {n.input(0)}));
}
bool lower_gelu(NodeLowering& n) {
  const std::string approximate = n.attr_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh") return n.refuse("approximate is '{}'", approximate);
  return n.output(0, n.emit(GeluAttrs{approximate == "tanh"}, {n.input(0)}));
}
bool lower_swish(NodeLowering& n) {
  return n.output(0, n.emit(SiluAttrs{n.attr_float("alpha", 1)}, {n.input(0)}));
}
bool lower_swiglu(NodeLowering& n) {
  return n.output(0, n.mul(n.emit(SiluAttrs{n.attr_float("alpha", 1)}, {n.input(0)}), n.input(1)));
}
bool lower_mish(NodeLowering& n) {
  const ValueId x = n.input(0);
  return n.output(0, n.mul(x, n.emit(TanhAttrs{}, {n.emit(SoftplusAttrs{}, {x})})));
}
bool lower_elu(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(0, n.emit(EluAttrs{n.attr_float("alpha", 1), 1, 1}, {n.input(0)}));
}
bool lower_selu(NodeLowering& n) {
  ignore_legacy(n);
  const bool old = n.opset() < 6;
  const double alpha = n.attr_float("alpha", old ? 1.6732 : static_cast<double>(1.67326319217681884765625f));
  const double gamma = n.attr_float("gamma", old ? 1.0507 : static_cast<double>(1.05070102214813232421875f));
  return n.output(0, n.emit(EluAttrs{alpha, 1, gamma}, {n.input(0)}));
}
bool lower_celu(NodeLowering& n) {
  const double alpha = n.attr_float("alpha", 1);
  if (alpha == 0) return n.refuse("alpha is 0");
  return n.output(0, n.emit(EluAttrs{alpha, 1 / alpha, 1}, {n.input(0)}));
}
bool lower_leaky_relu(NodeLowering& n) {
  ignore_legacy(n);
  return n.output(0, n.emit(LeakyReluAttrs{n.attr_float("alpha", static_cast<double>(0.01f))}, {n.input(0)}));
}
bool lower_prelu(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = n.input(0);
  ValueId slope = n.input(1);
  const int64_t rank = n.rank(x);
  // Before opset 7 a slope of one dim went along the channels.
  if (n.opset() < 7 && n.rank(slope) == 1 && n.size(slope) > 1 && rank >= 2)
    slope = along_axis(n, slope, 1, rank);
  Dims d = n.dims(slope);
  while (static_cast<int64_t>(d.size()) > rank && d.front() == 1) d.erase(d.begin());
  return n.output(0, n.emit(PReluAttrs{}, {x, n.reshape(slope, d)}));
}
bool lower_softsign(NodeLowering& n) {
  const ValueId x = n.input(0);
  const ValueId size = n.emit(AbsAttrs{}, {x});
  return n.output(0, n.div(x, n.add(n.scalar(n.dtype(x), 1), size)));
}

ValueId where_compare(NodeLowering& n, CompareFn fn, ValueId x, double bound, ValueId yes, ValueId no) {
  // A bound that 16 bits would move is met in float32.
  const bool exact = x < 0 || survives(*Constant::scalar(DType::kFloat64, bound), n.dtype(x), true);
  const ValueId seen = exact || is_wide_float(n.dtype(x)) ? x : n.cast(x, DType::kFloat32);
  const ValueId test = n.compare(fn, {seen, n.scalar(n.dtype(seen), bound)});
  return n.where({test, yes, no});
}
bool lower_shrink(NodeLowering& n) {
  const double bias = n.attr_float("bias", 0), lambda = n.attr_float("lambd", 0.5);
  const DType t = n.dtype(n.input(0));
  const ValueId x = as_float(n, n.input(0));
  const DType f = n.dtype(x);
  const ValueId none = n.scalar(f, 0);
  ValueId y = where_compare(n, CompareFn::kGreater, x, lambda, n.sub(x, n.scalar(f, bias)), none);
  y = where_compare(n, CompareFn::kLess, x, -lambda, n.add(x, n.scalar(f, bias)), y);
  return n.output(0, n.cast(y, t));
}
bool lower_thresholded_relu(NodeLowering& n) {
  const ValueId x = n.input(0);
  return n.output(
      0, where_compare(n, CompareFn::kGreater, x, n.attr_float("alpha", 1), x, n.scalar(n.dtype(x), 0)));
}

// ---- withdrawn, still in files

bool lower_affine(NodeLowering& n) {
  const double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 0);
  const ValueId x = n.input(0);
  const ValueId shift = n.scalar(n.dtype(x), beta);
  return n.output(0, n.add(n.mul(x, n.scalar(n.dtype(x), alpha)), shift));
}
bool lower_scaled_tanh(NodeLowering& n) {
  const double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  const ValueId x = n.input(0);
  const ValueId t = n.emit(TanhAttrs{}, {n.mul(x, n.scalar(n.dtype(x), beta))});
  return n.output(0, n.mul(t, n.scalar(n.dtype(x), alpha)));
}
bool lower_parametric_softplus(NodeLowering& n) {
  const double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  const ValueId x = n.input(0);
  const ValueId t = n.emit(SoftplusAttrs{}, {n.mul(x, n.scalar(n.dtype(x), beta))});
  return n.output(0, n.mul(t, n.scalar(n.dtype(x), alpha)));
}

// ---- com.microsoft

bool lower_ms_gelu(NodeLowering& n) { return n.output(0, n.emit(GeluAttrs{0}, {n.input(0)})); }
bool lower_bias_gelu(NodeLowering& n) {
  return n.output(0, n.emit(GeluAttrs{0}, {n.add(n.input(0), n.input(1))}));
}
// X [..., 2 D] + bias [2 D]: the left half times Gelu of the right one.
bool lower_bias_split_gelu(NodeLowering& n) {
  const ValueId x = n.add(n.input(0), n.input(1));
  const int64_t axis = n.rank(x) - 1;
  if (x < 0 || axis < 0 || n.dims(x).back() % 2 != 0)
    return n.refuse_shapes("X {} cannot be split in halves", to_string(n.dims(n.input(0))));
  const int64_t half = n.dims(x).back() / 2;
  const ValueId gate = n.emit(GeluAttrs{0}, {n.slice(x, axis, half, half)});
  return n.output(0, n.mul(n.slice(x, axis, 0, half), gate));
}
bool lower_fast_gelu(NodeLowering& n) {
  const ValueId x = n.has_input(1) ? n.add(n.input(0), n.input(1)) : n.input(0);
  return n.output(0, n.emit(GeluAttrs{1}, {x}));
}
bool lower_quick_gelu(NodeLowering& n) {
  return n.output(0, n.emit(SiluAttrs{n.attr_float("alpha", static_cast<double>(1.702f))}, {n.input(0)}));
}

}  // namespace

std::span<const OnnxOperator> activation_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Relu", 1, lower_relu, "N", kTakesBounded},
      {"Clip", 1, lower_clip, "N N N", kTakesBounded},
      {"Sigmoid", 1, lower_plain<SigmoidAttrs>, "F", kTakesBounded},
      {"Tanh", 1, lower_plain<TanhAttrs>, "F", kTakesBounded},
      {"Softplus", 1, lower_plain<SoftplusAttrs>, "F", kTakesBounded},
      {"HardSwish", 14, lower_plain<HardSwishAttrs>, "F", kTakesBounded},
      {"HardSigmoid", 1, lower_hard_sigmoid, "F", kTakesBounded},
      {"Gelu", 20, lower_gelu, "F", kTakesBounded},
      {"Swish", 24, lower_swish, "F", kTakesBounded},
      {"SwiGLU", 28, lower_swiglu, "F F", kNoTraits},
      {"Mish", 18, lower_mish, "F", kTakesBounded},
      {"Elu", 1, lower_elu, "F", kTakesBounded},
      {"Selu", 1, lower_selu, "F", kTakesBounded},
      {"Celu", 12, lower_celu, "F", kTakesBounded},
      {"LeakyRelu", 1, lower_leaky_relu, "F", kTakesBounded},
      {"PRelu", 1, lower_prelu, "N N", kTakesBounded | kTwoInputs},
      {"Softsign", 1, lower_softsign, "F", kTakesBounded},
      {"Shrink", 9, lower_shrink, "N", kTakesBounded},
      {"ThresholdedRelu", 1, lower_thresholded_relu, "F", kTakesBounded},
      {"Affine", 1, lower_affine, "F", kNoTraits},
      {"ScaledTanh", 1, lower_scaled_tanh, "F", kNoTraits},
      {"ParametricSoftplus", 1, lower_parametric_softplus, "F", kNoTraits},
      {"Gelu", 1, lower_ms_gelu, "F", kTakesBounded, kMicrosoft},
      {"BiasGelu", 1, lower_bias_gelu, "F F", kTakesBounded, kMicrosoft},
      {"BiasSplitGelu", 1, lower_bias_split_gelu, "F F", kTakesBounded, kMicrosoft},
      {"FastGelu", 1, lower_fast_gelu, "F F", kTakesBounded, kMicrosoft},
      {"QuickGelu", 1, lower_quick_gelu, "F", kTakesBounded, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
