// Unique among a number of items that depends on data. Padding repeats the first item, so it only adds to the
// count of that item.
#include <algorithm>

#include "converter/import/lengths/bounded_operands.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

class BoundedUnique : private BoundedOperands {
 public:
  using BoundedOperands::BoundedOperands;

  Ids run(const UniqueAttrs& a) {
    UniqueAttrs along = a;
    ValueId x = in_[0];
    if (a.axis < 0) {
      LengthId whole = lengths_.constant(1);
      for (const LengthId id : of_[0]) whole = lengths_.mul(whole, id);
      x = b_.reshaped(x, {whole});
      along.axis = 0;
    }
    if (x < 0) return Ids(wanted_.size(), kUnknown);
    const LengthId items = lengths_.of_axis(x, along.axis);
    const int64_t dim = n_.dims(x)[static_cast<size_t>(along.axis)];
    x = b_.filled(x, 0);
    const LengthList of_items = b_.of_axes(x);
    std::vector<bool> wanted(5, true);
    if (!lengths_.known(items) && dim > 0) {
      const ValueId at = b_.emit(
          WhereAttrs{}, {b_.used(items, dim), index_row(n_, dim), lengths_.value(lengths_.constant(0))});
      x = b_.emit(GatherAttrs{along.axis}, {x, at});
    }
    Ids r = n_.emit_padded(along, {x}, wanted);
    if (r[4] < 0) return r;
    if (!lengths_.known(items)) {
      // The padding's share of the first item's count, found by its place among the items.
      const LengthId some = lengths_.min(items, lengths_.constant(1));
      const ValueId added = lengths_.value(lengths_.sub(lengths_.constant(dim), items));
      const ValueId first = b_.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kEqual)},
                                    {r[1], lengths_.value(lengths_.constant(0))});
      const ValueId fewer = b_.emit(SubAttrs{}, {r[3], added});
      const ValueId inside = b_.used(lengths_.symbol(r[4], {0, dim}), dim);
      r[3] = b_.emit(
          WhereAttrs{},
          {b_.emit(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)}, {first, inside}), fewer, r[3]});
      r[4] = b_.emit(MulAttrs{}, {r[4], lengths_.value(some)});
    }
    r[0] = b_.with_lengths(r[0], of_items);
    r[2] = b_.with_lengths(r[2], {items});
    return r;
  }
};

}  // namespace

std::vector<ValueId> emit_bounded_unique(NodeLowering& n, const OpAttrs& attrs, std::vector<ValueId> inputs,
                                         const std::vector<bool>& wanted) {
  return BoundedUnique(n, attrs, std::move(inputs), wanted).run(std::get<UniqueAttrs>(attrs));
}

}  // namespace sinter::convert
