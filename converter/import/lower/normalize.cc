// Normalisations, those of com.microsoft among them.
#include <algorithm>

#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr double kEpsilon = 1e-5f;

// Norms compute in the type that x and their parameters meet in, and give x's: inner_type() where the
// parameters' words are p, otherwise all have one type.

ValueId layer_norm(NodeLowering& n, ValueId x, ValueId scale, ValueId bias, int64_t axis, double epsilon,
                   size_t mean_output, size_t deviation_output) {
  const DType inner = n.inner_type();
  std::vector<ValueId> inputs{n.cast(x, inner), n.cast(scale, inner)};
  if (bias != kAbsent) inputs.push_back(n.cast(bias, inner));
  const bool mean = n.wants_output(mean_output), deviation = n.wants_output(deviation_output);
  std::vector<bool> wanted{true};
  if (mean || deviation) wanted.push_back(mean);
  if (deviation) wanted.push_back(true);
  const std::vector<ValueId> r = n.emit_many(LayerNormAttrs{axis, epsilon}, inputs, wanted);
  // stash_type's default; for a type that is wider, too.
  if (mean) n.output(mean_output, n.cast(r[1], DType::kFloat32));
  if (deviation) n.output(deviation_output, n.cast(r[2], DType::kFloat32));
  return n.cast(r[0], n.dtype(x));
}

bool lower_layer_norm(NodeLowering& n) {
  n.ignore_attr("stash_type");
  int64_t axis = n.attr_int("axis", -1);
  if (!n.normalize_axis(&axis, n.rank(n.input(0)))) return false;
  return n.output(
      0, layer_norm(n, n.input(0), n.input(1), n.input(2), axis, n.attr_float("epsilon", kEpsilon), 1, 2));
}

ValueId rms_norm(NodeLowering& n, ValueId x, ValueId scale, int64_t axis, double epsilon) {
  const DType inner = n.inner_type();
  return n.cast(n.emit(RmsNormAttrs{axis, epsilon}, {n.cast(x, inner), n.cast(scale, inner)}), n.dtype(x));
}
bool lower_rms_norm(NodeLowering& n) {
  n.ignore_attr("stash_type");
  int64_t axis = n.attr_int("axis", -1);
  if (!n.normalize_axis(&axis, n.rank(n.input(0)))) return false;
  return n.output(0, rms_norm(n, n.input(0), n.input(1), axis, n.attr_float("epsilon", kEpsilon)));
}

// [N, C, ...] normalised in groups of channels.
ValueId group_norm(NodeLowering& n, ValueId x, ValueId scale, ValueId bias, int64_t groups, double epsilon) {
  if (n.rank(x) < 2) return n.refuse_shapes("its input must have rank 2 or more, not {}", n.rank(x));
  const DType inner = n.inner_type();
  const ValueId y = n.emit(GroupNormAttrs{groups, epsilon},
                           {n.to_channels_last(n.cast(x, inner)), n.cast(scale, inner), n.cast(bias, inner)});
  return n.cast(n.to_channels_first(y), n.dtype(x));
}

// Before opset 21 scale and bias belonged to groups.
bool lower_group_norm(NodeLowering& n) {
  n.ignore_attr("stash_type");
  const ValueId x = n.input(0);
  ValueId scale = n.input(1), bias = n.input(2);
  if (!n.has_input(2) || n.rank(x) < 2) return n.refuse("needs three inputs, the first of rank 2 or more");
  const int64_t groups = n.attr_int("num_groups", 0), channels = n.dims(x)[1];
  if (groups < 1 || channels % groups != 0)
    return n.refuse_shapes("{} channels in {} groups", channels, groups);
  for (ValueId* p : {&scale, &bias})
    if (n.opset() < 21 && n.size(*p) == groups && groups != channels)
      *p = n.reshape(n.broadcast(n.reshape(*p, {groups, 1}), {groups, channels / groups}), {channels});
  return n.output(0, group_norm(n, x, scale, bias, groups, n.attr_float("epsilon", kEpsilon)));
}

bool lower_instance_norm(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = n.input(0);
  if (!n.has_input(2) || n.rank(x) < 2) return n.refuse("needs three inputs, the first of rank 2 or more");
  return n.output(0,
                  group_norm(n, x, n.input(1), n.input(2), n.dims(x)[1], n.attr_float("epsilon", kEpsilon)));
}

// A folded constant in the narrow type that the model computes in; what is computed of it is not rounded to
// that type first.
ValueId folded_to(NodeLowering& n, ValueId v, DType t) {
  const ConstantPtr exact = n.constant(v);
  if (!exact || is_wide_float(t)) return n.cast(v, t);
  const ConstantPtr wide = n.constant(n.cast(v, DType::kFloat32)), narrow = n.constant(n.cast(v, t));
  return wide && narrow ? n.add_constant(Constant::rounded(narrow, wide)) : n.cast(v, t);
}

// x and the parameters of a BatchNormalization with which it is y = x * a + b: scale, bias, mean, variance.
struct BatchNorm {
  ValueId x = kUnknown, p[4] = {kUnknown, kUnknown, kUnknown, kUnknown};
  double epsilon = kEpsilon;
};

// Training mode (BatchNormalization-14): mean and variance are those of x, all axes but the channels';
// outputs 1 and 2 are the running ones, moved towards them. Exporters write the standardisation of weights
// so, which folds.
bool batch_statistics(NodeLowering& n, BatchNorm* b) {
  const double momentum = n.attr_float("momentum", static_cast<double>(0.9f));
  const DType t = n.dtype(b->x);
  const DType inner = n.constant(b->x) || t == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  if (!n.constant(b->x))
    n.warn(
        "is in training mode: as written, it normalizes by the statistics of its input; for inference export "
        "it with the statistics from training");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n.rank(b->x); ++i)
    if (i != 1) axes.push_back(i);
  const ValueId x = n.cast(b->x, inner);
  const auto mean = [&](ValueId v) { return n.reduce(ReduceFn::kMean, int_list(axes), 1, {v}); };
  const ValueId centre = mean(x), apart = n.sub(x, centre), spread = mean(n.mul(apart, apart));
  const ValueId statistics[2] = {centre, spread};
  for (size_t i = 0; i < 2; ++i) {
    const ValueId running = n.input(3 + i);
    b->p[2 + i] = n.reshape(statistics[i], {n.size(statistics[i])});
    if (!n.wants_output(1 + i)) continue;
    const ValueId own = n.mul(b->p[2 + i], n.scalar(inner, 1 - momentum));
    const ValueId kept = n.scalar(inner, momentum);
    const ValueId moved = n.add(n.mul(n.cast(running, inner), kept), own);
    if (!n.output(1 + i, n.cast(moved, n.dtype(running)))) return false;
  }
  return true;
}

// y = x * a + b with a = scale / sqrt(var + epsilon), b = bias - mean * a, computed in double where constant.
bool lower_batch_norm(NodeLowering& n) {
  ignore_legacy(n);
  for (const char* a : {"momentum", "is_test"}) n.ignore_attr(a);
  BatchNorm given;
  given.epsilon = n.attr_float("epsilon", kEpsilon);
  const bool training = n.attr_int("training_mode", 0) != 0;
  const bool spatial = n.attr_int("spatial", 1) != 0;
  const ValueId x = given.x = n.input(0);
  for (size_t i = 0; i < 5; ++i)
    if (!n.has_input(i)) return n.refuse("needs five inputs");
  const int64_t rank = n.rank(x);
  for (size_t i = 0; i < 4; ++i) given.p[i] = n.input(i + 1);
  if (training) {
    if (rank < 2) return n.refuse_shapes("its input must have rank 2 or more in training, not {}", rank);
    if (!batch_statistics(n, &given)) return false;
  } else {
    // Exporters list the statistics as outputs too; at inference they are what came in.
    for (size_t i = 1; i < n.output_count(); ++i)
      if (n.wants_output(i)) n.output(i, n.input(i % 2 == 1 ? 3 : 4));
  }
  const DType result = n.dtype(x);
  ValueId p[4];
  bool constant = true;
  for (size_t i = 0; i < 4; ++i) p[i] = given.p[i], constant = constant && n.constant(p[i]) != nullptr;
  // Constants fold to a and b, of x's type. Otherwise these are computed in the type that x meets the
  // parameters in. The running statistics do not enter y in training: there it is the type that the
  // statistics of x are computed in, or float64 where scale or bias has that.
  DType t = constant ? result : n.inner_type();
  if (!constant && training) {
    const bool wide = n.dtype(p[0]) == DType::kFloat64 || n.dtype(p[1]) == DType::kFloat64;
    t = wide ? DType::kFloat64 : n.dtype(p[2]);
  }
  const DType inner = constant ? DType::kFloat64 : t;
  for (ValueId& v : p) v = n.cast(v, inner);
  const ValueId deviation = n.emit(SqrtAttrs{}, {n.add(p[3], n.scalar(inner, given.epsilon))});
  ValueId a = n.div(p[0], deviation);
  ValueId b = n.sub(p[1], n.mul(p[2], a));
  a = folded_to(n, a, t), b = folded_to(n, b, t);
  if (a < 0 || b < 0) return false;
  if (spatial && rank >= 2) {
    a = along_axis(n, a, 1, rank), b = along_axis(n, b, 1, rank);
  } else if (!spatial) {
    Dims d = n.dims(x);
    d[0] = 1;
    if (element_count(d) != n.size(a))
      return n.refuse_shapes("its statistics do not fit {}", to_string(n.dims(x)));
    a = n.reshape(a, d), b = n.reshape(b, d);
  }
  return n.output(0, n.cast(n.add(n.mul(n.cast(x, t), a), b), result));
}

bool lower_lrn(NodeLowering& n) {
  const LrnAttrs a{n.attr_int("size", 1), n.attr_float("alpha", static_cast<double>(1e-4f)),
                   n.attr_float("beta", 0.75), n.attr_float("bias", 1)};
  return n.output(0, n.to_channels_first(n.emit(a, {n.to_channels_last(n.input(0))})));
}

// The result is 0 where the norm is 0.
bool lower_lp_norm(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.attr_int("axis", -1);
  const int64_t p = n.attr_int("p", 2);
  if (p != 1 && p != 2) return n.refuse("p is {}, not 1 or 2", p);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  const ReduceFn fn = p == 1 ? ReduceFn::kL1 : ReduceFn::kSumSquare;
  ValueId norm = n.reduce(fn, IntList{axis}, 1, {x});
  if (p == 2) norm = n.emit(SqrtAttrs{}, {norm});
  const DType t = n.dtype(x);
  const ValueId zero = n.compare(CompareFn::kEqual, {norm, n.scalar(t, 0)});
  return n.output(0, n.div(x, n.where({zero, n.scalar(t, 1), norm})));
}

bool lower_mean_variance_norm(NodeLowering& n) {
  const ValueId x = n.input(0);
  std::vector<int64_t> axes;
  bool scale = true;
  if (n.opset() < 9) {
    // The experimental operator of opset 1: one sample at a time, each channel alone or all together.
    for (int64_t i = n.attr_int("across_channels", 0) != 0 ? 1 : 2; i < n.rank(x); ++i) axes.push_back(i);
    scale = n.attr_int("normalize_variance", 1) != 0;
  } else {
    axes = n.attr_ints("axes", {0, 2, 3});
  }
  if (!n.normalize_axes(&axes, n.rank(x))) return false;
  const auto mean = [&](ValueId v) { return n.reduce(ReduceFn::kMean, int_list(axes), 1, {v}); };
  const ValueId centred = n.sub(x, mean(x));
  if (!scale) return n.output(0, centred);
  const ValueId deviation = n.emit(SqrtAttrs{}, {mean(n.mul(centred, centred))});
  return n.output(0, n.div(centred, n.add(deviation, n.scalar(n.dtype(x), 1e-9))));
}

// ---- com.microsoft

// GroupNorm: X, gamma, beta. SkipGroupNorm: X, gamma, beta, skip, bias?, all added up first; output 1 is the
// sum.
bool lower_microsoft_group_norm(NodeLowering& n) {
  const bool skips = n.node().op_type == "SkipGroupNorm", last = n.attr_int("channels_last", 1) != 0;
  const int64_t groups = n.attr_int("groups", 0), activation = n.attr_int("activation", 0);
  const double epsilon = n.attr_float("epsilon", kEpsilon);
  for (size_t i = 0; i < (skips ? 4U : 3U); ++i)
    if (!n.has_input(i)) return n.refuse("needs {} inputs", skips ? "four" : "three");
  if (activation != 0 && activation != 1) return n.refuse("activation {} is not 0 or 1", activation);
  ValueId x = last ? n.input(0) : n.to_channels_last(n.input(0));
  const Dims d = n.dims(x);
  if (d.size() < 3 || groups < 1 || d.back() % groups != 0)
    return n.refuse_shapes("{} channels of X {} in {} groups", d.empty() ? 0 : d.back(),
                           to_string(n.dims(n.input(0))), groups);
  if (skips) {
    ValueId skip = n.input(3);
    if (n.rank(skip) == 2) {
      Dims wide(d.size(), 1);
      wide.front() = n.dims(skip)[0], wide.back() = n.dims(skip)[1];
      skip = n.reshape(skip, wide);
    } else if (!last) {
      skip = n.to_channels_last(skip);
    }
    x = n.add(x, skip);
    if (n.has_input(4)) x = n.add(x, n.input(4));
    if (x >= 0 && n.dims(x) != d)
      return n.refuse_shapes("skip {} does not fit X {}", to_string(n.dims(n.input(3))), to_string(d));
    if (n.wants_output(1) && !n.output(1, last ? x : n.to_channels_first(x))) return false;
  }
  const DType inner = n.inner_type();
  ValueId y = n.emit(GroupNormAttrs{groups, epsilon},
                     {n.cast(x, inner), n.cast(n.input(1), inner), n.cast(n.input(2), inner)});
  if (activation == 1) y = n.emit(SiluAttrs{1}, {y});
  y = n.cast(y, n.dtype(x));
  return n.output(0, last ? y : n.to_channels_first(y));
}

// Returns the factor of a row in an RmsNorm, without the scale, in float32.
ValueId reciprocal_root(NodeLowering& n, ValueId x, int64_t axis, double epsilon) {
  const DType wide = n.dtype(x) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const ValueId v = n.cast(x, wide);
  const ValueId squares = n.reduce(ReduceFn::kMean, IntList{axis}, 1, {n.mul(v, v)});
  return n.emit(RsqrtAttrs{}, {n.add(squares, n.scalar(wide, epsilon))});
}

// (input, skip, gamma, beta?, bias?) -> output, mean, 1/deviation, the sum
bool lower_skip_norm(NodeLowering& n, bool simplified) {
  const double epsilon = n.attr_float("epsilon", 1e-12);
  ValueId sum = n.add(n.input(0), n.input(1));
  const ValueId bias = n.input(simplified ? 3 : 4);
  if (bias != kAbsent) sum = n.add(sum, bias);
  if (sum < 0) return false;
  if (n.dims(sum) != n.dims(n.input(0)))
    return n.refuse_shapes("skip {} does not fit input {}", to_string(n.dims(n.input(1))),
                           to_string(n.dims(n.input(0))));
  n.output(3, sum);
  const int64_t axis = n.rank(sum) - 1;
  if (simplified) {
    if (n.wants_output(1)) {  // the norm subtracts no mean: 0, as onnxruntime gives it
      Dims rows = n.dims(sum);
      rows[static_cast<size_t>(axis)] = 1;
      if (!n.output(1, n.broadcast(n.scalar(DType::kFloat32, 0), rows))) return false;
    }
    if (n.wants_output(2) && !n.output(2, reciprocal_root(n, sum, axis, epsilon))) return false;
    return n.output(0, rms_norm(n, sum, n.input(2), axis, epsilon));
  }
  return n.output(0, layer_norm(n, sum, n.input(2), n.input(3), axis, epsilon, 1, 2));
}
bool lower_skip_layer_norm(NodeLowering& n) { return lower_skip_norm(n, false); }
bool lower_skip_rms_norm(NodeLowering& n) { return lower_skip_norm(n, true); }

}  // namespace

std::span<const OnnxOperator> normalize_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"LayerNormalization", 1, lower_layer_norm, "F p p", kTakesBounded | kTwoInputs},
      {"RMSNormalization", 23, lower_rms_norm, "F p", kTakesBounded | kTwoInputs},
      {"SimplifiedLayerNormalization", 1, lower_rms_norm, "F p", kTwoInputs},
      {"SimplifiedLayerNormalization", 1, lower_rms_norm, "F p", kTakesBounded | kTwoInputs, kMicrosoft},
      {"LayerNormalization", 1, lower_layer_norm, "F p p", kTakesBounded | kTwoInputs, kMicrosoft},
      {"SkipLayerNormalization", 1, lower_skip_layer_norm, "F F F F F",
       kTakesBounded | kSumsProducts | kThreeInputs, kMicrosoft},
      {"SkipSimplifiedLayerNormalization", 1, lower_skip_rms_norm, "F F F F",
       kTakesBounded | kSumsProducts | kThreeInputs, kMicrosoft},
      {"GroupNormalization", 18, lower_group_norm, "F p p", kNoTraits},
      {"GroupNorm", 1, lower_microsoft_group_norm, "F p p", kNoTraits, kMicrosoft},
      {"SkipGroupNorm", 1, lower_microsoft_group_norm, "F p p F F", kNoTraits, kMicrosoft},
      {"InstanceNormalization", 1, lower_instance_norm, "F f f", kNoTraits},
      {"BatchNormalization", 1, lower_batch_norm, "F p p p p", kTakesBounded},
      {"LRN", 1, lower_lrn, "F", kNoTraits},
      {"LpNormalization", 1, lower_lp_norm, "F", kNoTraits},
      {"MeanVarianceNormalization", 1, lower_mean_variance_norm, "F", kNoTraits},
  };
  return kRules;
}

}  // namespace sinter::convert
