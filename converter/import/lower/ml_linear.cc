// ai.onnx.ml: linear models, and what stands before and behind them.
#include <cmath>

#include "converter/import/lower/ml_scores.h"
#include "converter/ir/integer_range.h"

namespace sinter::convert {
namespace {

constexpr DType kFloat = DType::kFloat32;

ConstantPtr row_of(const std::vector<double>& numbers) {
  const std::vector<float> floats(numbers.begin(), numbers.end());
  return Constant::of<float>(kFloat, {static_cast<int64_t>(floats.size())}, floats);
}

// (x - offset) * scale, along the last axis.
bool lower_scaler(NodeLowering& n) {
  const std::vector<double> offset = n.attr_floats("offset"), scale = n.attr_floats("scale");
  ValueId x = n.input(0);
  if (x < 0) return false;
  const int64_t features = n.rank(x) == 0 ? 1 : n.dims(x).back();
  for (const auto& [name, list] : {std::pair("offset", &offset), std::pair("scale", &scale)})
    if (!list->empty() && list->size() != 1 && static_cast<int64_t>(list->size()) != features)
      return n.refuse_shapes("{} has {} numbers for {} features", name, list->size(), features);
  x = n.cast(x, kFloat);
  if (!offset.empty()) x = n.sub(x, n.add_constant(row_of(offset)));
  if (!scale.empty()) x = n.mul(x, n.add_constant(row_of(scale)));
  return n.output(0, x);
}

// 1 where x is above the threshold, else 0, in x's type.
bool lower_binarizer(NodeLowering& n) {
  const double threshold = n.attr_float("threshold", 0);
  const ValueId x = n.input(0);
  if (x < 0) return false;
  const DType type = n.dtype(x);
  const auto range = range_of_integers(type);
  if (range &&
      !(threshold >= static_cast<double>(range->low) && threshold < static_cast<double>(range->high)))
    return n.refuse("threshold {} is outside the range of {}", threshold, dtype_name(type));
  // An integer is above a number where it is above the largest integer up to it.
  const ValueId bound = n.scalar(type, range ? std::floor(threshold) : threshold);
  return n.output(0, n.cast(n.compare(CompareFn::kGreater, {x, bound}), type));
}

// Rows divided by their largest element, the sum of their magnitudes, or their length; rows of norm 0 stay.
bool lower_normalizer(NodeLowering& n) {
  const std::string norm = n.attr_string("norm", "MAX");
  ValueId x = n.input(0);
  if (x < 0) return false;
  const int64_t rank = n.rank(x);
  if (rank != 1 && rank != 2)
    return n.refuse_shapes("the input must be [N,C] or [C], not {}", to_string(n.dims(x)));
  x = n.cast(x, kFloat);
  const IntList axes{rank - 1};
  const auto reduced = [&](ReduceFn fn) { return n.reduce(fn, axes, 1, {x}); };
  ValueId size = kUnknown;
  if (norm == "MAX")
    size = reduced(ReduceFn::kMax);
  else if (norm == "L1")
    size = reduced(ReduceFn::kL1);
  else if (norm == "L2")
    size = n.emit(SqrtAttrs{}, {reduced(ReduceFn::kSumSquare)});
  else
    return n.refuse("norm '{}' is not one of MAX, L1 and L2", norm);
  const ValueId zero = n.compare(CompareFn::kEqual, {size, n.scalar(kFloat, 0)});
  return n.output(0, n.div(x, n.where({zero, n.scalar(kFloat, 1), size})));
}

// x * coefficients' + intercepts, with one row of coefficients for each target. kUnknown: refused.
ValueId linear_scores(NodeLowering& n, std::optional<int64_t> targets) {
  const std::vector<double> coefficients = n.attr_floats("coefficients"),
                            intercepts = n.attr_floats("intercepts");
  const ValueId x = feature_rows(n, n.input(0));
  if (x < 0) return kUnknown;
  const int64_t features = n.dims(x)[1], count = static_cast<int64_t>(coefficients.size());
  const int64_t rows = targets ? *targets : features > 0 ? count / features : 0;
  if (rows < 1 || features < 1 || rows > count || count % rows != 0 || count / rows != features)
    return n.refuse_shapes("{} coefficients do not make rows of {} features", count, features);
  if (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != rows)
    return n.refuse_shapes("{} intercepts for {} rows of coefficients", intercepts.size(), rows);
  std::vector<ValueId> operands{x, n.reshape(n.add_constant(row_of(coefficients)), {rows, features})};
  if (!intercepts.empty()) operands.push_back(n.add_constant(row_of(intercepts)));
  return n.emit(FullyConnectedAttrs{}, operands);
}

bool lower_linear_regressor(NodeLowering& n) {
  const auto transform = named_post_transform(n);
  const int64_t targets = n.attr_int("targets", 1);
  if (!transform) return false;
  return n.output(0, post_transformed(n, linear_scores(n, targets), *transform));
}

// One row of coefficients for two labels: the score is that of the second, and decides by its sign.
bool lower_linear_classifier(NodeLowering& n) {
  n.ignore_attr("multi_class");
  const auto transform = named_post_transform(n);
  const auto labels = class_labels(n, "classlabels_ints", "classlabels_strings");
  const ValueId scores = linear_scores(n, std::nullopt);
  if (!transform || !labels || scores < 0) return false;
  const int64_t rows = n.dims(scores)[1];
  if (rows != labels->count && !(rows == 1 && labels->count == 2))
    return n.refuse_shapes("{} rows of coefficients for {} labels", rows, labels->count);
  if (labels->count == 1) return n.refuse("a single label, of which runtimes give different results");
  if (rows == 1) {
    if (*transform != PostTransform::kLogistic && *transform != PostTransform::kNone)
      return n.refuse(
          "this post_transform of the score of two classes, of which runtimes give different results");
    ValueId second = scores;
    if (*transform == PostTransform::kLogistic) second = n.emit(SigmoidAttrs{}, {scores});
    // The other's: 1 - score, and where it is a logistic function the same.
    const ValueId first = *transform == PostTransform::kLogistic
                              ? n.emit(SigmoidAttrs{}, {n.emit(NegAttrs{}, {scores})})
                              : n.sub(n.scalar(kFloat, 1), scores);
    const bool done = n.output(0, binary_label(n, *labels, scores, 0));
    return n.output(1, n.emit(ConcatAttrs{1}, {first, second})) && done;
  }
  const bool done = n.output(0, highest_label(n, *labels, scores));
  return n.output(1, post_transformed(n, scores, *transform)) && done;
}

// Columns of the last axis; of a vector as one row.
bool lower_array_feature_extractor(NodeLowering& n) {
  ValueId x = n.input(0);
  const ValueId y = n.input(1);
  if (x < 0 || y < 0) return false;
  if (n.rank(x) == 0) return n.refuse_shapes("the input is a scalar, which has no columns");
  if (n.rank(x) == 1) x = n.unsqueeze(x, 0);
  const int64_t count = n.size(y), columns = n.dims(x).back();
  if (const ConstantPtr known = n.constant(y))
    for (const int64_t i : known->as_int64s())
      if (i < 0 || i >= columns) return n.refuse_shapes("column {} of {}", i, columns);
  return n.output(0, n.emit(GatherAttrs{n.rank(x) - 1}, {x, n.reshape(y, {count})}));
}

// A list of maps from labels to probabilities is the tensor of the probabilities.
bool lower_zip_map(NodeLowering& n) {
  const std::vector<int64_t> integers = n.attr_ints("classlabels_int64s");
  const std::vector<std::string> strings = n.attr_strings("classlabels_strings");
  const ValueId x = n.input(0);
  if (x < 0) return false;
  const size_t labels = std::max(integers.size(), strings.size());
  if (n.rank(x) < 1 || n.rank(x) > 2 || n.dims(x).back() != static_cast<int64_t>(labels))
    return n.refuse_shapes("{} labels for {}", labels, to_string(n.dims(x)));
  constexpr size_t kMostNamed = 16;
  std::string list;
  for (size_t i = 0; i < labels && i <= kMostNamed; ++i)
    list += i == kMostNamed
                ? ", ..."
                : fmt::format("{}{}", i == 0 ? "" : ", ",
                              strings.empty() ? fmt::format("{}", integers[i]) : "'" + strings[i] + "'");
  n.warn(
      "maps do not exist at run time; output '{}' is the tensor of the probabilities, in the order of the "
      "labels {}",
      n.wants_output(0) ? n.node().outputs[0] : "", list);
  return n.output(0, x);
}

}  // namespace

std::span<const OnnxOperator> ml_linear_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Scaler", 1, lower_scaler, "F", kOwnType, kMachineLearning},
      {"Binarizer", 1, lower_binarizer, "N", kNoTraits, kMachineLearning},
      {"Normalizer", 1, lower_normalizer, "F", kOwnType, kMachineLearning},
      {"LinearRegressor", 1, lower_linear_regressor, "F", kOwnType, kMachineLearning},
      {"LinearClassifier", 1, lower_linear_classifier, "F", kOwnType, kMachineLearning},
      {"ArrayFeatureExtractor", 1, lower_array_feature_extractor, "A i", kTwoInputs, kMachineLearning},
      {"ZipMap", 1, lower_zip_map, "F", kNoTraits, kMachineLearning},
  };
  return kRules;
}

}  // namespace sinter::convert
