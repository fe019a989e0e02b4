// ai.onnx.ml: tree ensembles. All trees go down one level at a time: a look-up of the feature and the
// threshold of each tree's current branch, a comparison, and a look-up of the next branch. Leaves lead to
// themselves.
#include <algorithm>
#include <cmath>
#include <set>

#include "converter/import/lower/forest.h"
#include "converter/import/lower/ml_scores.h"

namespace sinter::convert {
namespace {

enum class Aggregate { kAverage = 0, kSum, kMin, kMax };

constexpr size_t kMostWeights = size_t{1} << 26;  // of all leaves
constexpr double kInf = std::numeric_limits<double>::infinity();

class ForestEmitter {
 public:
  // `type`: of x, thresholds and weights.
  ForestEmitter(NodeLowering& n, const Forest& forest, DType type) : n_(n), forest_(forest), type_(type) {}

  // The leaf of every tree: int64 [N,T], numbers of forest.leaves. `x`: [N,F].
  ValueId leaves(ValueId x) {
    const int64_t rows = n_.dims(x)[0], trees = static_cast<int64_t>(forest_.roots.size());
    if (forest_.features > n_.dims(x)[1])
      return n_.refuse_shapes("a branch reads feature {} of {}", forest_.features - 1, n_.dims(x)[1]);
    const auto of_branches = [&](auto field, double of_leaf) {
      std::vector<double> list;
      for (const TreeBranch& b : forest_.branches) list.push_back(static_cast<double>(field(b)));
      list.resize(list.size() + forest_.leaves.size(), of_leaf);
      return list;
    };
    const auto any = [&](auto field) {
      return std::any_of(forest_.branches.begin(), forest_.branches.end(), field);
    };
    const bool all_equal = !any([](const TreeBranch& b) { return !b.equal; });
    const bool mixed = !all_equal && any([](const TreeBranch& b) { return b.equal; });
    const bool nan = any([](const TreeBranch& b) { return b.nan_yes; });
    const ValueId features =
        table(DType::kInt64, of_branches([](const TreeBranch& b) { return b.feature; }, 0));
    const ValueId values = table(type_, of_branches([](const TreeBranch& b) { return b.value; }, 0));
    const ValueId yes = children([](const TreeBranch& b) { return b.yes; });
    const ValueId no = children([](const TreeBranch& b) { return b.no; });
    const ValueId equal =
        mixed ? table(DType::kBool, of_branches([](const TreeBranch& b) { return b.equal; }, 0)) : kAbsent;
    const ValueId nan_yes =
        nan ? table(DType::kBool, of_branches([](const TreeBranch& b) { return b.nan_yes; }, 0)) : kAbsent;
    std::vector<int64_t> roots;
    for (const int64_t root : forest_.roots) roots.push_back(row_of(root));
    ValueId at = n_.broadcast(n_.reshape(n_.int64s(roots), {1, trees}), {rows, trees});
    for (int64_t level = 0; level < forest_.depth && at >= 0; ++level) {
      const ValueId seen = n_.emit(GatherElementsAttrs{1}, {x, looked_up(features, at)});
      const ValueId value = looked_up(values, at);
      ValueId goes = n_.compare(all_equal ? CompareFn::kEqual : CompareFn::kLessOrEqual, {seen, value});
      if (mixed) goes = n_.where({looked_up(equal, at), n_.compare(CompareFn::kEqual, {seen, value}), goes});
      if (nan) {
        const ValueId is_nan = n_.emit(ClassifyAttrs{kClassifyNan}, {seen});
        const ValueId both = n_.bitwise(BitwiseFn::kAnd, {is_nan, looked_up(nan_yes, at)});
        goes = n_.bitwise(BitwiseFn::kOr, {goes, both});
      }
      at = n_.where({goes, looked_up(yes, at), looked_up(no, at)});
    }
    if (forest_.branches.empty()) return at;
    return n_.sub(at, n_.int64(forest_.branches.size()));
  }

  // Returns what the leaves give for each target, over all trees: [N,targets].
  ValueId aggregated(ValueId leaves, int64_t targets, Aggregate how) {
    const auto count = static_cast<size_t>(targets);
    if (count > kMostWeights / std::max<size_t>(forest_.leaves.size(), 1))
      return n_.refuse("{} leaves with {} targets are too many", forest_.leaves.size(), targets);
    const bool extreme = how == Aggregate::kMin || how == Aggregate::kMax;
    const double nothing = how == Aggregate::kMin ? kInf : how == Aggregate::kMax ? -kInf : 0;
    std::vector<double> weights(forest_.leaves.size() * count, nothing);
    bool finite = true;
    for (size_t leaf = 0; leaf < forest_.leaves.size(); ++leaf)
      for (const LeafWeight& w : forest_.leaves[leaf]) {
        if (w.target < 0 || w.target >= targets)
          return n_.refuse("a leaf has a weight for {}, but the numbers are 0 to {}", w.target, targets - 1);
        double& sum = weights[leaf * count + static_cast<size_t>(w.target)];
        finite &= std::isfinite(w.weight);
        if (!extreme)
          sum += w.weight;
        else
          sum = how == Aggregate::kMin ? std::min(sum, w.weight) : std::max(sum, w.weight);
      }
    const bool whole = std::find(weights.begin(), weights.end(), nothing) == weights.end();
    if (extreme && !finite) return n_.refuse("the weights of its leaves are not finite");
    const ValueId rows =
        n_.reshape(table(type_, weights), {static_cast<int64_t>(forest_.leaves.size()), targets});
    const ValueId given = n_.emit(GatherAttrs{0}, {rows, leaves});
    const ReduceFn fn = how == Aggregate::kMin   ? ReduceFn::kMin
                        : how == Aggregate::kMax ? ReduceFn::kMax
                                                 : ReduceFn::kSum;
    ValueId y = n_.reduce(fn, IntList{1}, 0, {given});
    if (how == Aggregate::kAverage)
      y = n_.div(y, n_.scalar(type_, static_cast<double>(forest_.roots.size())));
    // A target to which no tree gave a weight is 0.
    if (extreme && !whole)
      y = n_.where({n_.compare(CompareFn::kEqual, {y, n_.scalar(type_, nothing)}), n_.scalar(type_, 0), y});
    return y;
  }

 private:
  int64_t row_of(int64_t at) const {
    return Forest::is_leaf(at) ? static_cast<int64_t>(forest_.branches.size() + Forest::leaf_number(at)) : at;
  }
  template <class Field>
  ValueId children(Field field) {
    std::vector<int64_t> list;
    for (const TreeBranch& b : forest_.branches) list.push_back(row_of(field(b)));
    for (size_t i = 0; i < forest_.leaves.size(); ++i)
      list.push_back(static_cast<int64_t>(forest_.branches.size() + i));
    return n_.int64s(list);
  }
  ValueId table(DType type, const std::vector<double>& list) {
    const ConstantPtr wide = Constant::of<double>(DType::kFloat64, {static_cast<int64_t>(list.size())}, list);
    std::vector<ConstantPtr> cast{wide};
    if (type != DType::kFloat64 &&
        !evaluate(CastAttrs{static_cast<int64_t>(type), 1}, {wide}, 1, &cast, false).ok())
      return n_.refuse("its numbers cannot be converted to {}", dtype_name(type));
    return n_.add_constant(cast[0]);
  }
  ValueId looked_up(ValueId table, ValueId at) { return n_.emit(GatherAttrs{0}, {table, at}); }

  NodeLowering& n_;
  const Forest& forest_;
  const DType type_;
};

// x as [N,F] in the type that trees compute in. kUnknown: refused.
ValueId tree_rows(NodeLowering& n, DType* type) {
  ValueId x = n.input(0);
  if (x < 0) return kUnknown;
  if (n.rank(x) == 1) x = n.unsqueeze(x, 0);
  if (n.rank(x) != 2 || n.dims(x)[1] < 1)
    return n.refuse_shapes("the input must be [N,F] or [F], not {}", to_string(n.dims(x)));
  *type = n.dtype(x) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  return n.cast(x, *type);
}

// One base value for each target. False: refused.
bool read_base(NodeLowering& n, int64_t targets, std::vector<double>* base) {
  *base = floats_or_tensor(n, "base_values");
  if (base->empty() || static_cast<int64_t>(base->size()) == targets) return true;
  return n.refuse_shapes("{} base values for {}", base->size(), targets);
}

ValueId with_base(NodeLowering& n, ValueId scores, const std::vector<double>& base) {
  if (base.empty() || scores < 0) return scores;
  const DType type = n.dtype(scores);
  const ValueId row =
      n.add_constant(Constant::of<double>(DType::kFloat64, {static_cast<int64_t>(base.size())}, base));
  return n.add(scores, n.cast(row, type));
}

bool lower_regressor(NodeLowering& n) {
  DType type = DType::kFloat32;
  const ValueId x = tree_rows(n, &type);
  const auto transform = named_post_transform(n);
  const int64_t targets = n.attr_int("n_targets", 1);
  const std::string name = n.attr_string("aggregate_function", "SUM");
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const auto named = std::find(std::begin(kNames), std::end(kNames), name);
  if (named == std::end(kNames))
    return n.refuse("aggregate_function '{}' is not one of AVERAGE, SUM, MIN and MAX", name);
  if (targets < 1 || targets > kLongestAxis) return n.refuse("n_targets is {}", targets);
  std::vector<double> base;
  const bool fits = read_base(n, targets, &base);
  const auto forest = x < 0 ? std::nullopt : read_forest(n, "target", type == DType::kFloat64);
  if (!forest || !transform || !fits) return false;
  ForestEmitter emitter(n, *forest, type);
  const auto how = static_cast<Aggregate>(named - std::begin(kNames));
  const ValueId scores = with_base(n, emitter.aggregated(emitter.leaves(x), targets, how), base);
  if (scores < 0) return false;
  return n.output(0, post_transformed(n, n.cast(scores, DType::kFloat32), *transform));
}

// Two labels and weights of class 0 only: the score is that of the second label. It is a probability if no
// weight is negative; otherwise its sign decides.
bool binary_scores(NodeLowering& n, const ClassLabels& labels, ValueId score, bool probability,
                   PostTransform transform) {
  if (transform != PostTransform::kNone && transform != PostTransform::kLogistic)
    return n.refuse(
        "this post_transform of the score of two classes, of which runtimes give different results");
  const ValueId negative = n.emit(NegAttrs{}, {score});
  ValueId first = probability ? n.sub(n.scalar(DType::kFloat32, 1), score) : negative, second = score;
  if (transform == PostTransform::kLogistic)
    first = n.emit(SigmoidAttrs{}, {negative}), second = n.emit(SigmoidAttrs{}, {score});
  const bool done = n.output(0, binary_label(n, labels, score, probability ? 0.5 : 0));
  return n.output(1, n.emit(ConcatAttrs{1}, {first, second})) && done;
}

bool lower_classifier(NodeLowering& n) {
  DType type = DType::kFloat32;
  const ValueId x = tree_rows(n, &type);
  const auto transform = named_post_transform(n);
  const auto labels = class_labels(n, "classlabels_int64s", "classlabels_strings");
  const auto forest = x < 0 ? std::nullopt : read_forest(n, "class", type == DType::kFloat64);
  const std::vector<double> base = floats_or_tensor(n, "base_values");
  if (!forest || !transform || !labels) return false;
  std::set<int64_t> classes;
  bool probability = true;
  for (const auto& leaf : forest->leaves)
    for (const LeafWeight& w : leaf) classes.insert(w.target), probability &= w.weight >= 0;
  if (labels->count == 1) return n.refuse("a single label, of which runtimes give different results");
  ForestEmitter emitter(n, *forest, type);
  if (labels->count == 2 && classes.size() == 1) {
    if (*classes.begin() != 0 || base.size() > 1)
      return n.refuse("two labels with weights for class {} only{}, of which runtimes give different results",
                      *classes.begin(), base.empty() ? "" : fmt::format(" and {} base values", base.size()));
    const ValueId score = with_base(n, emitter.aggregated(emitter.leaves(x), 1, Aggregate::kSum), base);
    if (score < 0) return false;
    return binary_scores(n, *labels, n.cast(score, DType::kFloat32), probability, *transform);
  }
  if (!base.empty() && static_cast<int64_t>(base.size()) != labels->count)
    return n.refuse_shapes("{} base values for {} labels", base.size(), labels->count);
  ValueId scores = with_base(n, emitter.aggregated(emitter.leaves(x), labels->count, Aggregate::kSum), base);
  if (scores < 0) return false;
  scores = n.cast(scores, DType::kFloat32);
  const bool done = n.output(0, highest_label(n, *labels, scores));
  return n.output(1, post_transformed(n, scores, *transform)) && done;
}

// ai.onnx.ml 5: numbers in place of names, results in the input's type.
bool lower_ensemble(NodeLowering& n) {
  DType type = DType::kFloat32;
  const ValueId x = tree_rows(n, &type);
  const int64_t transform = n.attr_int("post_transform", 0), how = n.attr_int("aggregate_function", 1),
                targets = n.attr_int("n_targets", 1);
  if (transform < 0 || transform > static_cast<int64_t>(PostTransform::kProbit))
    return n.refuse("post_transform {} is unknown", transform);
  if (how < 0 || how > static_cast<int64_t>(Aggregate::kMax))
    return n.refuse("aggregate_function {} is unknown", how);
  if (targets < 1 || targets > kLongestAxis) return n.refuse("n_targets is {}", targets);
  const auto forest = x < 0 ? std::nullopt : read_ensemble(n, type == DType::kFloat64);
  if (!forest) return false;
  const DType wanted = n.dtype(n.input(0));
  ForestEmitter emitter(n, *forest, type);
  const ValueId scores = emitter.aggregated(emitter.leaves(x), targets, static_cast<Aggregate>(how));
  if (scores < 0) return false;
  const auto post = static_cast<PostTransform>(transform);
  const ValueId y =
      post == PostTransform::kNone ? scores : post_transformed(n, n.cast(scores, DType::kFloat32), post);
  return y >= 0 && n.output(0, n.cast(y, is_float(wanted) ? wanted : DType::kFloat32));
}

}  // namespace

std::span<const OnnxOperator> ml_trees_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"TreeEnsembleRegressor", 1, lower_regressor, "F", kOwnType, kMachineLearning},
      {"TreeEnsembleClassifier", 1, lower_classifier, "F", kOwnType, kMachineLearning},
      {"TreeEnsemble", 1, lower_ensemble, "F", kNoTraits, kMachineLearning},
  };
  return kRules;
}

}  // namespace sinter::convert
