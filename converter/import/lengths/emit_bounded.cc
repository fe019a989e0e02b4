// How each operation treats lengths: either it keeps the elements along a bounded axis apart, so that its
// result has the same length, or padding is filled with neutral values before it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "converter/import/lengths/bounded_operands.h"
#include "converter/import/lower.h"
#include "converter/ir/op_table.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

using Ids = BoundedOperands::Ids;
using LengthList = BoundedOperands::LengthList;

template <class A, class... Others>
constexpr bool one_of = (std::is_same_v<A, Others> || ...);

// Operations that take no bounded dimension. No ONNX operator becomes an integer row while it is lowered.
template <class A>
constexpr bool kHasNoRule =
    one_of<A, AttentionAttrs, LinearAttentionAttrs, RopeAttrs, ReverseSequenceAttrs, CacheUpdateAttrs,
           QuantizeRowsAttrs, CheckLengthAttrs, CustomAttrs, IfAttrs, LoopAttrs, std::monostate> ||
    one_of<A, QConvAttrs, QDepthwiseConvAttrs, QConvTransposeAttrs, QFullyConnectedAttrs, QMatMulAttrs,
           LutAttrs, QAvgPoolAttrs, QMeanAttrs, QPReluAttrs, QSoftmaxAttrs, QResizeAttrs, QTableAttrs,
           QLstmAttrs, QGruAttrs>;

class BoundedEmitter : private BoundedOperands {
 public:
  using BoundedOperands::BoundedOperands;

  Ids run() {
    Ids results = by_rule();
    return axis_missing_ && !n_.refused() ? as_given() : results;
  }

 private:
  Ids by_rule() {
    return std::visit(
        [&](const auto& a) {
          using A = std::decay_t<decltype(a)>;
          if constexpr (requires { requires row_has(A::kOp, kElementwise); })
            return elementwise();
          else
            return rule(a);
        },
        attrs_);
  }
  Ids elementwise() {
    std::vector<size_t> all;
    for (size_t i = 0; i < in_.size(); ++i) all.push_back(i);
    return give(broadcast(all, 0));
  }

  // ---- rules

  template <class A>
  Ids rule(const A&) {
    static_assert(kHasNoRule<A>,
                  "this operation needs a rule for bounded dimensions, or a place in kHasNoRule");
    return refuse();
  }
  Ids rule(const ViewAttrs& a) {
    if (a.dtype >= 0) return refuse();
    return {b_.viewed(in_[0], Dims(a.dims.begin(), a.dims.end()))};
  }
  Ids rule(const TransposeAttrs& a) {
    LengthList all;
    for (int i = 0; i < a.perm.size(); ++i) all.push_back(length(0, a.perm[i]));
    return give(all);
  }
  Ids rule(const SliceAttrs& a) {
    std::set<int64_t> whole;
    for (int i = 0; i < a.sizes.size(); ++i)
      if (a.starts[i] == 0 && a.steps[i] == 1 && a.sizes[i] == dim(0, i)) whole.insert(i);
    return keeping(whole);
  }
  Ids rule(const ConcatAttrs& a) { return {b_.concatenated(in_, a.axis)}; }
  Ids rule(const BroadcastAttrs& a) {
    std::set<int64_t> kept;
    const size_t added = static_cast<size_t>(a.dims.size()) - rank(0);
    LengthList all;
    for (int i = 0; i < a.dims.size(); ++i) {
      const auto own = static_cast<int64_t>(i) - static_cast<int64_t>(added);
      const bool follows = own >= 0 && dim(0, own) == a.dims[i];
      if (own >= 0 && open(0, own) && !follows) return refuse();
      all.push_back(follows ? length(0, own) : lengths_.constant(a.dims[i]));
    }
    return give(all);
  }
  Ids rule(const TileAttrs& a) {
    std::set<int64_t> once;
    for (int i = 0; i < a.repeats.size(); ++i)
      if (a.repeats[i] == 1) once.insert(i);
    return keeping(once);
  }
  Ids rule(const PadAttrs& a) {
    std::set<int64_t> same;
    const auto axes = static_cast<int64_t>(rank(0));
    for (int64_t i = 0; i < axes; ++i)
      if (a.pads[static_cast<int>(i)] == 0 && a.pads[static_cast<int>(i + axes)] == 0) same.insert(i);
    return keeping(same);
  }

  Ids rule(const GatherAttrs& a) {
    LengthList all = of_[0];
    all.erase(all.begin() + a.axis);
    all.insert(all.begin() + a.axis, of_[1].begin(), of_[1].end());
    in_[1] = b_.indices(in_[1], length(0, a.axis), dim(0, a.axis), dim(0, a.axis));
    return give(all);
  }
  Ids rule(const GatherElementsAttrs& a) {
    in_[1] = b_.indices(in_[1], length(0, a.axis), dim(0, a.axis), dim(0, a.axis));
    return give(of_[1]);
  }
  // Index tuples, component by component.
  ValueId tuples(ValueId v, int64_t first, const LengthList& data, const Dims dims) {
    const auto count = n_.dims(v).back();
    const auto axis = static_cast<int64_t>(n_.dims(v).size()) - 1;
    const auto bounded = n_.parent().graph().value(v).bounded_dims;
    bool any = !bounded.empty();
    for (int64_t k = 0; k < count; ++k) any |= !lengths_.known(data[static_cast<size_t>(first + k)]);
    if (!any) return v;
    Ids parts;
    for (int64_t k = 0; k < count; ++k) {
      ValueId part = n_.slice(v, axis, k, 1);
      const auto at = static_cast<size_t>(first + k);
      part = b_.indices(part, data[at], dims[at], dims[at]);
      parts.push_back(part);
    }
    return parts.size() == 1 ? parts[0] : n_.emit(ConcatAttrs{axis}, parts);
  }
  Ids rule(const GatherNdAttrs& a) {
    if (rank(1) == 0) return as_given();
    const auto tuple = n_.dims(in_[1]).back();
    const auto last = static_cast<int64_t>(rank(1)) - 1;
    if (a.batch_dims < 0 || a.batch_dims > last || a.batch_dims + tuple > static_cast<int64_t>(rank(0)))
      return as_given();
    if (open(1, last)) return refuse();
    for (int64_t i = 0; i < a.batch_dims; ++i) {
      const LengthId both = joined({{0, i}, {1, i}});
      of_[1][static_cast<size_t>(i)] = both;
    }
    LengthList all(of_[1].begin(), of_[1].end() - 1);
    all.insert(all.end(), of_[0].begin() + a.batch_dims + tuple, of_[0].end());
    if (const auto number = lengths_.uniform(in_[0])) {
      // Whatever the indices are, as of a mask of ones.
      Dims dims(n_.dims(in_[1]).begin(), n_.dims(in_[1]).end() - 1);
      dims.insert(dims.end(), n_.dims(in_[0]).begin() + a.batch_dims + tuple, n_.dims(in_[0]).end());
      const ConstantPtr one = Constant::scalar_int(n_.dtype(in_[0]), *number);
      return {b_.with_lengths(n_.broadcast(n_.add_constant(one), dims), all)};
    }
    in_[1] = tuples(in_[1], a.batch_dims, of_[0], n_.dims(in_[0]));
    return give(all);
  }

  // Updates of padding go to an element more, which is cut off again.
  ValueId one_more(ValueId v, int64_t axis) {
    PadAttrs pad;
    const auto axes = static_cast<int64_t>(n_.dims(v).size());
    for (int64_t i = 0; i < 2 * axes; ++i) pad.pads.push(i == axes + axis ? 1 : 0);
    return b_.emit(pad, {v});
  }
  // `indices` with those of padding replaced by `number`.
  ValueId aside(ValueId indices, ValueId like, int64_t number) {
    if (indices < 0) return indices;
    n_.parent().graph().value(indices).bounded_dims = n_.parent().graph().value(like).bounded_dims;
    return b_.filled(indices, static_cast<double>(number));
  }
  void one_length_for_updates(size_t axes) {
    for (size_t i = 0; i < axes; ++i) {
      const auto axis = static_cast<int64_t>(i);
      const LengthId both = joined({{1, axis}, {2, axis}});
      of_[1][i] = of_[2][i] = both;
    }
    for (const size_t i : {size_t{1}, size_t{2}}) {
      LengthList all = lengths_.of_axes(in_[i]);
      std::copy(of_[i].begin(), of_[i].begin() + static_cast<std::ptrdiff_t>(axes), all.begin());
      // A view of its own: the operand has other readers.
      in_[i] = b_.with_lengths(b_.emit(CopyAttrs{}, {in_[i]}), all);
    }
  }
  Ids rule(const ScatterElementsAttrs& a) {
    if (rank(1) != rank(0) || rank(2) != rank(0)) return as_given();
    const int64_t whole = dim(0, a.axis);
    const bool padded = bounded(1) || bounded(2);
    if (padded) one_length_for_updates(rank(1));
    ValueId at = b_.indices(in_[1], length(0, a.axis), whole, padded ? whole + 1 : whole);
    if (!padded) {
      in_[1] = at;
      return give(of_[0]);
    }
    at = n_.cast(at, DType::kInt64);
    // Those from the end count from the axis as it was.
    const ValueId zero = n_.add_constant(Constant::scalar_int(DType::kInt64, 0));
    const ValueId below = b_.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {at, zero});
    const ValueId moved =
        b_.emit(AddAttrs{}, {at, n_.add_constant(Constant::scalar_int(DType::kInt64, whole))});
    at = b_.emit(WhereAttrs{}, {below, moved, at});
    const ValueId y = b_.emit(attrs_, {one_more(in_[0], a.axis), aside(at, in_[1], whole), in_[2]});
    return {b_.with_lengths(b_.cut(y, a.axis, whole), of_[0])};
  }
  Ids rule(const ScatterNdAttrs&) {
    if (rank(1) == 0) return as_given();
    const auto tuple = n_.dims(in_[1]).back();
    const auto last = static_cast<int64_t>(rank(1)) - 1;
    if (tuple > static_cast<int64_t>(rank(0)) || static_cast<int64_t>(rank(2)) < last) return as_given();
    if (open(1, last)) return refuse();
    const bool padded = bounded(1) || bounded(2);
    if (padded) one_length_for_updates(static_cast<size_t>(last));
    // Slices that the updates replace whole.
    for (size_t i = static_cast<size_t>(tuple); i < rank(0); ++i) {
      const LengthId both =
          joined({{0, static_cast<int64_t>(i)}, {2, last + static_cast<int64_t>(i) - tuple}});
      of_[0][i] = both;
    }
    if (!padded || tuple == 0) {
      if (padded) return refuse();
      in_[1] = tuples(in_[1], 0, of_[0], n_.dims(in_[0]));
      return give(of_[0]);
    }
    Ids parts;
    const Dims dims = n_.dims(in_[0]);
    for (int64_t k = 0; k < tuple; ++k) {
      ValueId part = n_.slice(in_[1], last, k, 1);
      const auto at = static_cast<size_t>(k);
      // Only the first axis has one element more.
      part = b_.indices(part, of_[0][at], dims[at], dims[at] + (k == 0));
      if (k == 0) {
        const ValueId zero = n_.add_constant(Constant::scalar_int(n_.dtype(part), 0));
        const ValueId below = b_.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {part, zero});
        const ValueId moved =
            b_.emit(AddAttrs{}, {part, n_.add_constant(Constant::scalar_int(n_.dtype(part), dims[0]))});
        part = aside(b_.emit(WhereAttrs{}, {below, moved, part}), in_[1], dims[0]);
      }
      parts.push_back(n_.cast(part, DType::kInt64));
    }
    const ValueId at = parts.size() == 1 ? parts[0] : b_.emit(ConcatAttrs{last}, parts);
    const ValueId y = b_.emit(attrs_, {one_more(in_[0], 0), at, in_[2]});
    return {b_.with_lengths(b_.cut(y, 0, dims[0]), of_[0])};
  }

  // ---- along a bounded axis

  static double neutral(ReduceFn fn) {
    switch (fn) {
      case ReduceFn::kProd:
        return 1;
      case ReduceFn::kMax:
      case ReduceFn::kLogSumExp:
        return -kInfinity;
      case ReduceFn::kMin:
        return kInfinity;
      default:
        return 0;
    }
  }
  // The sum of `count` constants that are all the same, as a mask of ones has; kAbsent: they are not.
  ValueId sum_of_equal(LengthId count, const LengthList& all) {
    const ConstantPtr given = n_.constant(in_[0]);
    Dims dims;
    for (const LengthId length : all) dims.push_back(lengths_.known(length).value_or(-1));
    if (!given || given->size() == 0 || std::count(dims.begin(), dims.end(), -1) > 0) return kAbsent;
    const std::vector<int64_t> numbers = given->as_int64s();
    if (std::count(numbers.begin(), numbers.end(), numbers[0]) != static_cast<int64_t>(numbers.size()))
      return kAbsent;
    const ValueId sum =
        n_.mul(lengths_.value(count), n_.add_constant(Constant::scalar_int(DType::kInt64, numbers[0])));
    return n_.broadcast(n_.reshape(n_.cast(sum, n_.dtype(in_[0])), Dims(dims.size(), 1)), dims);
  }
  Ids rule(const ReduceAttrs& a) {
    const auto fn = static_cast<ReduceFn>(a.fn);
    LengthList all;
    LengthId count = lengths_.constant(1);
    std::vector<int64_t> reduced(a.axes.begin(), a.axes.end());
    for (size_t i = 0; i < rank(0); ++i) {
      const bool gone = std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(i)) != reduced.end();
      if (gone) count = lengths_.mul(count, of_[0][i]);
      if (!gone) all.push_back(of_[0][i]);
      if (gone && a.keepdims != 0) all.push_back(lengths_.constant(1));
    }
    if (lengths_.known(count)) return give(all);
    const DType t = n_.dtype(in_[0]);
    if (fn == ReduceFn::kSum && is_integer(t))
      if (const ValueId sum = sum_of_equal(count, all); sum != kAbsent) return {sum};
    if (t == DType::kBool && fn == ReduceFn::kMax) {
      fill(0, reduced, 0);
      return give(all);
    }
    if (t == DType::kBool && fn == ReduceFn::kMin) {
      fill(0, reduced, 1);
      return give(all);
    }
    fill(0, reduced, neutral(fn));
    if (fn != ReduceFn::kMean) return give(all);
    // The sum over the count, in float32 where the type is narrower.
    const bool narrow = is_float(t) && !is_wide_float(t);
    const DType wide = narrow ? DType::kFloat32 : t;
    ReduceAttrs sum = a;
    sum.fn = static_cast<int64_t>(ReduceFn::kSum);
    const ValueId total = b_.emit(sum, {n_.cast(in_[0], wide)});
    const ValueId mean = b_.emit(DivAttrs{}, {total, n_.cast(lengths_.value(count), wide)});
    return {b_.with_lengths(n_.cast(mean, t), all)};
  }
  Ids rule(const ArgReduceAttrs& a) {
    if (open(0, a.axis) && a.select_last != 0) return refuse();
    const bool largest = static_cast<ArgReduceFn>(a.fn) == ArgReduceFn::kMax;
    fill(0, {a.axis}, largest ? -kInfinity : kInfinity);
    LengthList all = of_[0];
    all[static_cast<size_t>(a.axis)] = lengths_.constant(1);
    if (a.keepdims == 0) all.erase(all.begin() + a.axis);
    return give(all);
  }
  Ids rule(const CumulateAttrs& a) {
    if (a.reverse != 0) fill(0, {a.axis}, static_cast<CumulateFn>(a.fn) == CumulateFn::kProd ? 1 : 0);
    return give(of_[0]);
  }
  // Of equal elements the first comes first: padding comes last. NaN is larger than everything.
  Ids rule(const TopKAttrs& a) {
    const double last = a.largest != 0               ? -kInfinity
                        : is_float(n_.dtype(in_[0])) ? std::numeric_limits<double>::quiet_NaN()
                                                     : kInfinity;
    fill(0, {a.axis}, last);
    LengthList all = of_[0];
    const LengthId k = lengths_.constant(a.k);
    all[static_cast<size_t>(a.axis)] = open(0, a.axis) ? b_.not_above(k, length(0, a.axis)) : k;
    return give(all);
  }
  Ids rule(const SoftmaxAttrs& a) {
    fill(0, {a.axis}, -kInfinity);
    return give(of_[0]);
  }
  Ids normalised(int64_t axis) {
    std::set<int64_t> before;
    for (int64_t i = 0; i < axis; ++i) before.insert(i);
    return keeping(before);
  }
  Ids rule(const LayerNormAttrs& a) { return normalised(a.axis); }
  Ids rule(const RmsNormAttrs& a) { return normalised(a.axis); }
  Ids rule(const DftAttrs& a) { return keeping(axes_but({a.axis, static_cast<int64_t>(rank(0)) - 1})); }

  // ---- products

  Ids rule(const FullyConnectedAttrs&) { return keeping(axes_but({static_cast<int64_t>(rank(0)) - 1})); }
  Ids rule(const LowBitFullyConnectedAttrs&) {
    return keeping(axes_but({static_cast<int64_t>(rank(0)) - 1}));
  }
  // Rows of x and their experts; an expert of a padded row is any of a TopK.
  Ids rule(const ExpertFullyConnectedAttrs&) { return give({length(0, 0), lengths_.constant(dim(2, 1))}); }
  Ids rule(const MatMulAttrs& a) {
    const auto ra = static_cast<int64_t>(rank(0)), rb = static_cast<int64_t>(rank(1));
    const int64_t row = a.transpose_a != 0 ? ra - 1 : ra - 2, left = a.transpose_a != 0 ? ra - 2 : ra - 1;
    const int64_t column = a.transpose_b != 0 ? rb - 2 : rb - 1, right = a.transpose_b != 0 ? rb - 1 : rb - 2;
    LengthList all = broadcast({0, 1}, 2);
    fix_beside_fixed({{0, left}, {1, right}});
    all.push_back(length(0, row)), all.push_back(length(1, column));
    if (open(0, left) || open(1, right)) {
      fill(0, {left}, 0), fill(1, {right}, 0);
      const LengthId summed = joined({{0, left}, {1, right}});
      // Every product reads the sum's length, so that the lengths are held against each other.
      if (summed != length(0, left) || summed != length(1, right)) {
        LengthList inner = lengths_.of_axes(in_[0]);
        inner[static_cast<size_t>(left)] = summed;
        in_[0] = b_.filled(b_.with_lengths(b_.emit(CopyAttrs{}, {in_[0]}), inner), {left}, 0);
      }
    }
    return give(all);
  }

  // ---- batches

  // One of one element, which goes to every element, is a product of rows.
  Ids rule(const ConvAttrs& a) {
    const auto is = [](const IntList& list, int64_t number) {
      return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == number; });
    };
    bool single = is(a.strides, 1) && is(a.pads, 0);
    for (int64_t axis = 1; axis + 1 < static_cast<int64_t>(rank(1)); ++axis) single &= dim(1, axis) == 1;
    return keeping(single ? axes_but({static_cast<int64_t>(rank(0)) - 1}) : std::set<int64_t>{0});
  }
  Ids rule(const DepthwiseConvAttrs&) { return keeping({0}); }
  Ids rule(const ConvTransposeAttrs&) { return keeping({0}); }
  Ids rule(const MaxPoolAttrs&) { return keeping({0}); }
  Ids rule(const AvgPoolAttrs&) { return keeping({0}); }
  Ids rule(const GroupNormAttrs&) { return keeping({0}); }
  Ids rule(const LrnAttrs&) { return keeping(axes_but({static_cast<int64_t>(rank(0)) - 1})); }
  Ids rule(const ResizeAttrs& a) {
    std::set<int64_t> same;
    for (int i = 0; i < a.sizes.size(); ++i)
      if (a.sizes[i] == dim(0, i) && (a.scales.size() == 0 || a.scales[i] == 1) && a.roi.size() == 0)
        same.insert(i);
    return keeping(same);
  }
  Ids rule(const QuantizeAttrs&) { return keeping(whole_scale() ? axes_but({}) : std::set<int64_t>{}); }
  Ids rule(const DequantizeAttrs&) { return keeping(whole_scale() ? axes_but({}) : std::set<int64_t>{}); }
  // 0 is within every range.
  Ids rule(const DynamicQuantizeAttrs&) {
    in_[0] = b_.filled(in_[0], 0);
    Ids results = n_.emit_padded(attrs_, in_, wanted_);
    if (!results.empty() && results[0] >= 0) results[0] = b_.with_lengths(results[0], of_[0]);
    return results;
  }
  bool whole_scale() const { return n_.size(in_[1]) == 1; }
  Ids rule(const GridSampleAttrs&) {
    if (rank(0) == 0) return as_given();
    for (size_t axis = 1; axis < rank(0); ++axis)
      if (open(0, static_cast<int64_t>(axis))) return refuse();
    LengthList all{joined({{0, 0}, {1, 0}})};
    in_[1] = b_.filled(in_[1], 0);
    for (size_t axis = 1; axis + 1 < rank(1); ++axis) all.push_back(of_[1][axis]);
    all.push_back(of_[0].back());
    return give(all);
  }
  Ids rule(const RoiAlignAttrs& a) {
    if (rank(0) == 0) return as_given();
    if (bounded(0)) return refuse();
    const LengthId regions = joined({{1, 0}, {2, 0}});
    in_[1] = b_.filled(in_[1], 0), in_[2] = b_.filled(in_[2], 0);
    return give({regions, lengths_.constant(a.out_height), lengths_.constant(a.out_width), of_[0].back()});
  }

  Ids rule(const LstmAttrs&) { return emit_bounded_recurrent(n_, attrs_, given_, wanted_); }
  Ids rule(const GruAttrs&) { return emit_bounded_recurrent(n_, attrs_, given_, wanted_); }
  Ids rule(const RnnAttrs&) { return emit_bounded_recurrent(n_, attrs_, given_, wanted_); }

  // ---- lengths of their own

  Ids rule(const UniqueAttrs&) { return emit_bounded_unique(n_, attrs_, given_, wanted_); }
  Ids rule(const NonZeroAttrs&) {
    in_[0] = b_.filled(in_[0], 0);
    return n_.emit_padded(attrs_, in_, wanted_);
  }
  // A box whose score is NaN is never kept; nor is one at the lowest score, if there is a threshold.
  Ids rule(const NmsAttrs&) {
    joined({{0, 0}, {1, 0}}), joined({{0, 1}, {1, 2}});
    const bool threshold = in_.size() > 3 && in_[3] >= 0;
    in_[1] = b_.filled(in_[1], threshold ? -kInfinity : std::numeric_limits<double>::quiet_NaN());
    in_[0] = b_.filled(in_[0], 0);
    return n_.emit_padded(attrs_, in_, wanted_);
  }
};

}  // namespace

std::vector<ValueId> emit_bounded(NodeLowering& n, const OpAttrs& attrs, std::vector<ValueId> inputs,
                                  const std::vector<bool>& wanted) {
  if (n.refused() || std::find(inputs.begin(), inputs.end(), kUnknown) != inputs.end())
    return std::vector<ValueId>(wanted.size(), kUnknown);
  return BoundedEmitter(n, attrs, std::move(inputs), wanted).run();
}

}  // namespace sinter::convert
