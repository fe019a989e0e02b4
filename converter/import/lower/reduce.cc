// Reductions, extremes and their places, running sums, the largest k, softmax.
#include <algorithm>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Axes by attribute or input; none: all, or with noop_with_empty_axes no axis.
ValueId reduce(NodeLowering& n, ReduceFn fn, ValueId x) {
  std::vector<int64_t> axes;
  if (!read_axes(n, 1, n.rank(x), &axes)) return kUnknown;
  const bool keep = n.attr_int("keepdims", 1) != 0, noop = n.attr_int("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !noop)
    for (int64_t i = 0; i < n.rank(x); ++i) axes.push_back(i);
  std::sort(axes.begin(), axes.end());
  return n.reduce(fn, int_list(axes), keep, {x});
}
template <ReduceFn Fn>
bool lower_reduce(NodeLowering& n) {
  return n.output(0, reduce(n, Fn, n.input(0)));
}
// Integers are summed in float64, where squares and sums stay within range, and a root or logarithm is cut to
// an integer.
template <typename Attrs>
bool reduce_then(NodeLowering& n, ReduceFn fn, const Attrs& then) {
  const ValueId x = n.input(0);
  const DType t = n.dtype(x);
  const ValueId sum = reduce(n, fn, is_float(t) ? x : n.cast(x, DType::kFloat64));
  return n.output(0, n.cast(n.emit(then, {sum}), t));
}
bool lower_reduce_l2(NodeLowering& n) { return reduce_then(n, ReduceFn::kSumSquare, SqrtAttrs{}); }
bool lower_reduce_log_sum(NodeLowering& n) { return reduce_then(n, ReduceFn::kSum, LogAttrs{}); }

template <ArgReduceFn Fn>
bool lower_arg_reduce(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  const ArgReduceAttrs a{static_cast<int64_t>(Fn), axis, n.attr_int("keepdims", 1) != 0,
                         n.attr_int("select_last_index", 0) != 0};
  return n.output(0, n.emit(a, {x}));
}

template <CumulateFn Fn>
bool lower_cumulate(NodeLowering& n) {
  const ValueId x = n.input(0);
  auto axis = n.constant_int(1);
  if (!axis || !n.normalize_axis(&*axis, n.rank(x))) return false;
  return n.output(0, n.emit(CumulateAttrs{static_cast<int64_t>(Fn), *axis, n.attr_int("exclusive", 0) != 0,
                                          n.attr_int("reverse", 0) != 0},
                            {x}));
}

// TopK-1 has k as attribute.
bool lower_top_k(NodeLowering& n) {
  const ValueId x = n.input(0);
  TopKAttrs a;
  a.axis = n.attr_int("axis", -1);
  if (!n.normalize_axis(&a.axis, n.rank(x))) return false;
  if (n.has_attr("k")) {
    a.k = n.attr_int("k", 1);
  }
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const LengthId length = lengths.of_axis(x, a.axis);
  LengthId k = lengths.constant(a.k);
  if (!n.has_attr("k")) {
    if (!n.has_input(1)) return n.refuse("has no K");
    const auto items = lengths.items(n.input(1));
    if (!items) return n.constant_int(1).has_value();
    if (items->size() != 1) return n.refuse("K has {} elements, not one", items->size());
    k = items->front();
  }
  a.largest = n.attr_int("largest", 1) != 0, a.sorted = n.attr_int("sorted", 1) != 0;
  const int64_t dim = n.dims(x)[static_cast<size_t>(a.axis)];
  if (const auto known = lengths.known(k); known && (*known < 0 || *known > dim))
    return n.refuse_shapes("k is {} for an axis of {}{}", *known, lengths.known(length) ? "" : "at most ",
                           dim);
  a.k = std::clamp<int64_t>(lengths.high(k), 0, dim);
  std::vector<LengthId> all = b.of_axes(x);
  if (!lengths.known(k)) k = b.at_most(k, a.k, LengthRule::kWithin);
  all[static_cast<size_t>(a.axis)] = b.not_above(k, length);
  const std::vector<ValueId> r = n.emit_many(a, {x}, 2);
  return n.output(0, b.with_lengths(r[0], all)) && n.output(1, b.with_lengths(r[1], all));
}

// ---- softmax and its relatives. Before opset 13 they saw a matrix [dims before axis, dims from axis on].

template <class Apply>
bool along_rows(NodeLowering& n, Apply apply) {
  const ValueId x = n.input(0);
  const int64_t rank = n.rank(x);
  const bool flat = n.opset() < 13;
  int64_t axis = n.attr_int("axis", flat ? 1 : -1);
  if (rank == 0) return n.output(0, n.reshape(apply(n.reshape(x, {1}), 0), {}));
  if (flat && axis == rank) return n.output(0, n.reshape(apply(flatten_to_2d(n, x, axis), 1), n.dims(x)));
  if (!n.normalize_axis(&axis, rank)) return false;
  const Dims d = n.dims(x);
  const bool one_axis = std::all_of(d.begin() + axis + 1, d.end(), [](int64_t dim) { return dim == 1; });
  if (!flat || one_axis) return n.output(0, apply(x, axis));
  return n.output(0, n.reshape(apply(flatten_to_2d(n, x, axis), 1), d));
}
template <int Log>
bool lower_softmax(NodeLowering& n) {
  return along_rows(n, [&](ValueId v, int64_t axis) { return n.emit(SoftmaxAttrs{axis, Log}, {v}); });
}
bool lower_hardmax(NodeLowering& n) {
  return along_rows(n, [&](ValueId v, int64_t axis) -> ValueId {
    if (v < 0) return kUnknown;
    const int64_t length = n.dims(v)[static_cast<size_t>(axis)];
    const ValueId largest = n.emit(ArgReduceAttrs{static_cast<int64_t>(ArgReduceFn::kMax), axis, 1, 0}, {v});
    const ValueId hot =
        n.compare(CompareFn::kEqual, {along_axis(n, index_row(n, length), axis, n.rank(v)), largest});
    return n.cast(hot, n.dtype(v));
  });
}

}  // namespace

std::span<const OnnxOperator> reduce_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"ReduceSum", 1, lower_reduce<ReduceFn::kSum>, "N i", kTakesBounded | kGrows},
      {"ReduceMean", 1, lower_reduce<ReduceFn::kMean>, "N i", kTakesBounded | kFractions},
      {"ReduceMax", 1, lower_reduce<ReduceFn::kMax>, "* i", kTakesBounded},
      {"ReduceMin", 1, lower_reduce<ReduceFn::kMin>, "* i", kTakesBounded},
      {"ReduceProd", 1, lower_reduce<ReduceFn::kProd>, "N i", kTakesBounded | kGrows},
      {"ReduceSumSquare", 1, lower_reduce<ReduceFn::kSumSquare>, "N i", kTakesBounded | kGrows},
      {"ReduceL1", 1, lower_reduce<ReduceFn::kL1>, "N i", kTakesBounded | kGrows},
      {"ReduceL2", 1, lower_reduce_l2, "N i", kTakesBounded | kFractions},
      {"ReduceLogSum", 1, lower_reduce_log_sum, "N i", kTakesBounded | kFractions},
      {"ReduceLogSumExp", 1, lower_reduce<ReduceFn::kLogSumExp>, "N i", kTakesBounded | kFractions},
      {"ArgMax", 1, lower_arg_reduce<ArgReduceFn::kMax>, "N", kTakesBounded | kOwnType},
      {"ArgMin", 1, lower_arg_reduce<ArgReduceFn::kMin>, "N", kTakesBounded | kOwnType},
      {"CumSum", 11, lower_cumulate<CumulateFn::kSum>, "N i", kTakesBounded | kGrows | kTwoInputs},
      {"CumProd", 26, lower_cumulate<CumulateFn::kProd>, "N i", kTakesBounded | kGrows | kTwoInputs},
      {"TopK", 1, lower_top_k, "N i", kTakesBounded},
      {"Softmax", 1, lower_softmax<0>, "F", kTakesBounded},
      {"LogSoftmax", 1, lower_softmax<1>, "F", kTakesBounded},
      {"Hardmax", 1, lower_hardmax, "F", kNoTraits},
  };
  return kRules;
}

}  // namespace sinter::convert
