#include "converter/import/lengths/bounded_indices.h"

#include <algorithm>

#include "converter/import/lower.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

BoundedOperands::Ids BoundedIndices::rule(const GatherAttrs& a) {
  LengthList all = of_[0];
  all.erase(all.begin() + a.axis);
  all.insert(all.begin() + a.axis, of_[1].begin(), of_[1].end());
  in_[1] = b_.indices(in_[1], length(0, a.axis), dim(0, a.axis), dim(0, a.axis));
  return give(all);
}

BoundedOperands::Ids BoundedIndices::rule(const GatherElementsAttrs& a) {
  in_[1] = b_.indices(in_[1], length(0, a.axis), dim(0, a.axis), dim(0, a.axis));
  return give(of_[1]);
}

// Returns index tuples whose numbers beyond the lengths of `data` are made invalid, component by component.
ValueId BoundedIndices::tuples(ValueId v, int64_t first, const LengthList& data, const Dims dims) {
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

BoundedOperands::Ids BoundedIndices::rule(const GatherNdAttrs& a) {
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
    // The result does not depend on the indices: the operand is a mask of ones, for example.
    Dims dims(n_.dims(in_[1]).begin(), n_.dims(in_[1]).end() - 1);
    dims.insert(dims.end(), n_.dims(in_[0]).begin() + a.batch_dims + tuple, n_.dims(in_[0]).end());
    const ConstantPtr one = Constant::scalar_int(n_.dtype(in_[0]), *number);
    return {b_.with_lengths(n_.broadcast(n_.add_constant(one), dims), all)};
  }
  in_[1] = tuples(in_[1], a.batch_dims, of_[0], n_.dims(in_[0]));
  return give(all);
}

// Returns `v` with one more element along an axis, which takes the updates of padding and is cut off again.
ValueId BoundedIndices::one_more(ValueId v, int64_t axis) {
  PadAttrs pad;
  const auto axes = static_cast<int64_t>(n_.dims(v).size());
  for (int64_t i = 0; i < 2 * axes; ++i) pad.pads.push(i == axes + axis ? 1 : 0);
  return b_.emit(pad, {v});
}

// Returns `indices` with those of padding replaced by `number`.
ValueId BoundedIndices::aside(ValueId indices, ValueId like, int64_t number) {
  if (indices < 0) return indices;
  n_.parent().graph().value(indices).bounded_dims = n_.parent().graph().value(like).bounded_dims;
  return b_.filled(indices, static_cast<double>(number));
}

// Returns indices that count from the start of an axis, which had `length` elements before it got one more.
ValueId BoundedIndices::from_start(ValueId at, int64_t length) {
  const auto number = [&](int64_t i) { return n_.add_constant(Constant::scalar_int(n_.dtype(at), i)); };
  const ValueId below = b_.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {at, number(0)});
  const ValueId moved = b_.emit(AddAttrs{}, {at, number(length)});
  return b_.emit(WhereAttrs{}, {below, moved, at});
}

// Gives axes of the indices and of the updates that are one axis one length.
void BoundedIndices::one_length_for_updates(size_t axes) {
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(i);
    const LengthId both = joined({{1, axis}, {2, axis}});
    of_[1][i] = of_[2][i] = both;
  }
  for (const size_t i : {size_t{1}, size_t{2}}) {
    LengthList all = lengths_.of_axes(in_[i]);
    std::copy(of_[i].begin(), of_[i].begin() + static_cast<std::ptrdiff_t>(axes), all.begin());
    // The operand has other readers, so the lengths are given to a copy.
    in_[i] = b_.with_lengths(b_.emit(CopyAttrs{}, {in_[i]}), all);
  }
}

BoundedOperands::Ids BoundedIndices::rule(const ScatterElementsAttrs& a) {
  if (rank(1) != rank(0) || rank(2) != rank(0)) return as_given();
  const int64_t whole = dim(0, a.axis);
  const bool padded = bounded(1) || bounded(2);
  if (padded) one_length_for_updates(rank(1));
  ValueId at = b_.indices(in_[1], length(0, a.axis), whole, padded ? whole + 1 : whole);
  if (!padded) {
    in_[1] = at;
    return give(of_[0]);
  }
  at = from_start(n_.cast(at, DType::kInt64), whole);
  const ValueId y = b_.emit(attrs_, {one_more(in_[0], a.axis), aside(at, in_[1], whole), in_[2]});
  return {b_.with_lengths(b_.cut(y, a.axis, whole), of_[0])};
}

BoundedOperands::Ids BoundedIndices::rule(const ScatterNdAttrs&) {
  if (rank(1) == 0) return as_given();
  const auto tuple = n_.dims(in_[1]).back();
  const auto last = static_cast<int64_t>(rank(1)) - 1;
  if (tuple > static_cast<int64_t>(rank(0)) || static_cast<int64_t>(rank(2)) < last) return as_given();
  if (open(1, last)) return refuse();
  const bool padded = bounded(1) || bounded(2);
  if (padded) one_length_for_updates(static_cast<size_t>(last));
  // The updates replace slices whole, so that both have one length.
  for (size_t i = static_cast<size_t>(tuple); i < rank(0); ++i) {
    const LengthId both = joined({{0, static_cast<int64_t>(i)}, {2, last + static_cast<int64_t>(i) - tuple}});
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
    // Only the first axis has one more element.
    part = b_.indices(part, of_[0][at], dims[at], dims[at] + (k == 0));
    if (k == 0) part = aside(from_start(part, dims[0]), in_[1], dims[0]);
    parts.push_back(n_.cast(part, DType::kInt64));
  }
  const ValueId at = parts.size() == 1 ? parts[0] : b_.emit(ConcatAttrs{last}, parts);
  const ValueId y = b_.emit(attrs_, {one_more(in_[0], 0), at, in_[2]});
  return {b_.with_lengths(b_.cut(y, 0, dims[0]), of_[0])};
}

}  // namespace sinter::convert
