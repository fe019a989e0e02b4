#include "converter/import/lower/ml_scores.h"

#include <algorithm>
#include <cmath>

namespace sinter::convert {
namespace {

constexpr DType kScore = DType::kFloat32;

ValueId score_reduced(NodeLowering& n, ValueId v, ReduceFn fn) { return n.reduce(fn, IntList{1}, 1, {v}); }

// Softmax in which scores of about 0 stay about 0, and are not part of the sum.
ValueId softmax_zero(NodeLowering& n, ValueId scores) {
  const ValueId highest = score_reduced(n, scores, ReduceFn::kMax);
  const ValueId magnitude = n.emit(AbsAttrs{}, {scores});
  const ValueId zero = n.compare(CompareFn::kLessOrEqual, {magnitude, n.scalar(kScore, 1e-7)});
  const ValueId exps = n.emit(ExpAttrs{}, {n.sub(scores, highest)});
  const ValueId sum = score_reduced(n, n.where({zero, n.scalar(kScore, 0), exps}), ReduceFn::kSum);
  const ValueId small = n.mul(scores, n.emit(ExpAttrs{}, {n.emit(NegAttrs{}, {highest})}));
  return n.div(n.where({zero, small, exps}), sum);
}

// sqrt(2) * erfinv(2 p - 1), by the approximation of ONNX's reference: with x = 2 p - 1, l = ln(1 - x^2) and
// a = 0.147, |erfinv(x)| = sqrt(sqrt(v^2 - l / a) - v), where v = 2 / (pi a) + l / 2.
ValueId probit(NodeLowering& n, ValueId p) {
  constexpr double kA = 0.147, kPi = 3.14159265358979323846;
  const auto number = [&](double x) { return n.scalar(kScore, x); };
  const ValueId one = number(1), x = n.sub(n.mul(p, number(2)), one);
  const ValueId above = n.add(number(1), x);
  const ValueId log = n.emit(LogAttrs{}, {n.mul(n.sub(number(1), x), above)});
  const ValueId least = number(2 / (kPi * kA)), v = n.add(n.mul(log, number(0.5)), least);
  const ValueId part = n.mul(log, number(1 / kA));
  const ValueId root = n.emit(SqrtAttrs{}, {n.sub(n.mul(v, v), part)});
  const ValueId size = n.emit(SqrtAttrs{}, {n.sub(root, v)});
  const ValueId negative = n.compare(CompareFn::kLess, {x, number(0)});
  const ValueId inverse = n.where({negative, n.emit(NegAttrs{}, {size}), size});
  return n.mul(inverse, number(1.41421356));
}

}  // namespace

std::optional<PostTransform> named_post_transform(NodeLowering& n) {
  const std::string name = n.attr_string("post_transform", "NONE");
  if (name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  n.refuse("post_transform '{}' is not one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO and PROBIT", name);
  return std::nullopt;
}

ValueId post_transformed(NodeLowering& n, ValueId scores, PostTransform transform) {
  if (scores < 0 || transform == PostTransform::kNone) return scores;
  if (transform == PostTransform::kProbit) return probit(n, scores);
  if (n.dims(scores).back() == 1)
    return n.refuse_advising("remove post_transform, and apply the function by an operator of its own",
                             "a post_transform of a single score is applied by ONNX's definition, but not by "
                             "onnxruntime");
  if (transform == PostTransform::kLogistic) return n.emit(SigmoidAttrs{}, {scores});
  return transform == PostTransform::kSoftmax ? n.emit(SoftmaxAttrs{1, 0}, {scores})
                                              : softmax_zero(n, scores);
}

ValueId feature_rows(NodeLowering& n, ValueId x) {
  if (x < 0) return x;
  if (n.rank(x) == 1) x = n.unsqueeze(x, 0);
  if (n.rank(x) != 2) return n.refuse_shapes("the input must be [N,F] or [F], not {}", to_string(n.dims(x)));
  return n.cast(x, kScore);
}

std::optional<ClassLabels> class_labels(NodeLowering& n, std::string_view integers,
                                        std::string_view strings) {
  ClassLabels labels;
  labels.numbers = n.attr_ints(integers);
  const std::vector<std::string> names = n.attr_strings(strings);
  if (!labels.numbers.empty() && !names.empty()) {
    n.refuse("{} and {} exclude each other", integers, strings);
    return std::nullopt;
  }
  if (!names.empty()) {
    std::string list;
    for (size_t i = 0; i < names.size(); ++i) {
      labels.numbers.push_back(static_cast<int64_t>(i));
      if (i < 16)
        list += fmt::format("{}{} '{}'", i == 0 ? "" : ", ", i, names[i]);
      else if (i == 16)
        list += ", ...";
    }
    n.warn("its labels are strings; output '{}' is the number of the label instead: {}",
           n.wants_output(0) ? n.node().outputs[0] : "label", list);
  }
  labels.count = static_cast<int64_t>(labels.numbers.size());
  if (labels.count == 0) {
    n.refuse("it has no labels: neither {} nor {}", integers, strings);
    return std::nullopt;
  }
  return labels;
}

ValueId labels_at(NodeLowering& n, const ClassLabels& labels, ValueId index) {
  if (index < 0) return index;
  bool counts = true;
  for (size_t i = 0; i < labels.numbers.size(); ++i) counts &= labels.numbers[i] == static_cast<int64_t>(i);
  return counts ? index : n.emit(GatherAttrs{0}, {n.int64s(labels.numbers), index});
}

ValueId binary_label(NodeLowering& n, const ClassLabels& labels, ValueId score, double threshold) {
  if (score < 0) return score;
  const ValueId positive = n.compare(CompareFn::kGreater, {score, n.scalar(kScore, threshold)});
  return labels_at(n, labels, n.reshape(n.cast(positive, DType::kInt64), {n.dims(score)[0]}));
}

ValueId highest_label(NodeLowering& n, const ClassLabels& labels, ValueId scores) {
  if (scores < 0) return scores;
  return labels_at(n, labels,
                   n.emit(ArgReduceAttrs{static_cast<int64_t>(ArgReduceFn::kMax), 1, 0, 0}, {scores}));
}

}  // namespace sinter::convert
