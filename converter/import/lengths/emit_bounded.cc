// How each operation treats lengths: either it keeps the elements along a bounded axis apart, so that its
// result has the same length, or padding is filled with neutral values before it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "converter/flow/element_map.h"
#include "converter/import/lengths/bounded_indices.h"
#include "converter/import/lower.h"
#include "converter/ir/builder.h"
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

class BoundedEmitter : private BoundedIndices {
 public:
  using BoundedIndices::BoundedIndices;

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

  using BoundedIndices::rule;
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
  Ids rule(const TransposeAttrs&) { return moved(); }
  Ids rule(const SliceAttrs&) { return moved(); }
  Ids rule(const ConcatAttrs& a) { return {b_.concatenated(in_, a.axis)}; }
  Ids rule(const BroadcastAttrs&) { return moved(); }
  Ids rule(const TileAttrs&) { return moved(); }
  Ids rule(const PadAttrs&) { return moved(); }
  // Axes that are taken whole keep their lengths.
  Ids moved() {
    const Dims own = n_.dims(in_[0]);
    std::vector<ValueFact> result;
    if (!infer_outputs(attrs_, {{n_.dtype(in_[0]), own}}, 1, {true}, &result).ok()) return as_given();
    const ElementMap map = *element_map(attrs_, {&own}, result[0].dims, 0);
    LengthList all;
    for (const int64_t dim : result[0].dims) all.push_back(lengths_.constant(dim));
    for (size_t i = 0; i < own.size(); ++i) {
      const AxisSource& from = map.axes[i];
      const bool is_whole = from.is_in_place() && own[i] == result[0].dims[static_cast<size_t>(from.axis)];
      if (is_whole) all[static_cast<size_t>(from.axis)] = of_[0][i];
      if (!is_whole && open(0, static_cast<int64_t>(i))) return refuse();
    }
    return bounded(1) ? refuse() : give(all);
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
  // Returns the sum of `count` constants that are all the same, as a mask of ones has; kAbsent: they differ.
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
    // The mean is the sum over the count, in float32 where the type is narrower.
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
  // Equal elements keep their order, so that padding comes last. NaN is larger than everything.
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
  // A row of x and its expert have one length; the expert of a padded row is any of a TopK.
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

  // A convolution whose window is one element is a product of rows.
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
  // Padding is filled with 0, which is within every range.
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
