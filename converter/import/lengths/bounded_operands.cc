#include "converter/import/lengths/bounded_operands.h"

#include <algorithm>
#include <limits>

#include "converter/import/lower.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

BoundedOperands::BoundedOperands(NodeLowering& n, const OpAttrs& attrs, Ids inputs,
                                 const std::vector<bool>& wanted)
    : n_(n),
      b_(n),
      lengths_(b_.lengths()),
      attrs_(attrs),
      given_(std::move(inputs)),
      in_(given_),
      wanted_(wanted) {
  for (const ValueId v : in_) of_.push_back(b_.of_axes(v));
}

BoundedOperands::Ids BoundedOperands::refuse() {
  Ids fixed = given_;
  bool any = false;
  for (ValueId& v : fixed) {
    const ValueId before = v;
    v = b_.fixed(v);
    any |= v != before;
  }
  if (any) return n_.emit_many(attrs_, fixed, wanted_);
  for (size_t i = 0; i < in_.size(); ++i)
    for (size_t axis = 0; axis < rank(i); ++axis)
      if (open(i, static_cast<int64_t>(axis)))
        return n_.refuse_advising(lengths_.fixing_advice(of_[i][axis]),
                                  "dimension {} of {} is bounded (at most {}), which {} does not support",
                                  axis, to_string(n_.dtype(in_[i]), n_.dims(in_[i])),
                                  dim(i, static_cast<int64_t>(axis)), op_name(op_of(attrs_))),
               Ids(wanted_.size(), kUnknown);
  return Ids(wanted_.size(), kUnknown);
}

BoundedOperands::Ids BoundedOperands::as_given() {
  n_.emit_padded(attrs_, given_, wanted_);
  return n_.refused() ? Ids(wanted_.size(), kUnknown) : refuse();
}

BoundedOperands::Ids BoundedOperands::give(const LengthList& all) {
  Ids results = n_.emit_padded(attrs_, in_, wanted_);
  for (ValueId& v : results)
    if (v >= 0) v = b_.with_lengths(v, all);
  return results;
}

bool BoundedOperands::only(const std::set<int64_t>& axes) const {
  for (size_t i = 0; i < in_.size(); ++i)
    for (size_t axis = 0; axis < rank(i); ++axis)
      if (open(i, static_cast<int64_t>(axis)) && (i > 0 || axes.count(static_cast<int64_t>(axis)) == 0))
        return false;
  return true;
}

BoundedOperands::Ids BoundedOperands::keeping(const std::set<int64_t>& axes) {
  if (!only(axes)) return refuse();
  Ids results = n_.emit_padded(attrs_, in_, wanted_);
  for (ValueId& v : results) {
    if (v < 0) continue;
    LengthList all = lengths_.of_axes(v);
    for (const int64_t axis : axes)
      if (axis < static_cast<int64_t>(rank(0)) && open(0, axis))
        all[static_cast<size_t>(axis)] = length(0, axis);
    v = b_.with_lengths(v, all);
  }
  return results;
}

std::set<int64_t> BoundedOperands::axes_but(std::set<int64_t> left_out) const {
  std::set<int64_t> axes;
  for (size_t i = 0; i < rank(0); ++i)
    if (left_out.count(static_cast<int64_t>(i)) == 0) axes.insert(static_cast<int64_t>(i));
  return axes;
}

void BoundedOperands::fill(size_t input, const std::vector<int64_t>& axes, double number) {
  for (const int64_t axis : axes)
    if (!has(input, axis)) return;
  in_[input] = b_.filled(in_[input], axes, number);
}

void BoundedOperands::fix_beside_fixed(const std::vector<std::pair<size_t, int64_t>>& axes) {
  for (const auto& [input, axis] : axes)
    if (!has(input, axis)) return;
  std::vector<std::pair<ValueId*, int64_t>> met;
  for (const auto& [input, axis] : axes) met.emplace_back(&in_[input], axis);
  const Ids before = in_;
  b_.fix_beside_fixed(met, true);
  for (size_t i = 0; i < in_.size(); ++i)
    if (in_[i] != before[i]) of_[i] = b_.of_axes(in_[i]);
}

LengthId BoundedOperands::joined(const std::vector<std::pair<size_t, int64_t>>& axes) {
  fix_beside_fixed(axes);
  std::optional<LengthId> all;
  int64_t least = std::numeric_limits<int64_t>::max();
  LengthId repeats = lengths_.constant(1);
  const bool many =
      std::any_of(axes.begin(), axes.end(), [&](const auto& a) { return dim(a.first, a.second) != 1; });
  for (const auto& [input, axis] : axes) {
    const LengthId own = length(input, axis);
    if (dim(input, axis) == 1) {
      if (!lengths_.known(own) && many)  // must be 1, which repeats
        repeats = lengths_.mul(repeats, b_.equal(own, lengths_.constant(1)));
      else if (!lengths_.known(own))
        all = all ? b_.equal(*all, own) : own, least = 1;
      continue;
    }
    all = all ? b_.equal(*all, own) : own;
    least = std::min(least, dim(input, axis));
  }
  if (!all) return lengths_.constant(1);
  for (const auto& [input, axis] : axes)
    if (has(input, axis) && dim(input, axis) > least) in_[input] = b_.cut(in_[input], axis, least);
  return lengths_.mul(*all, repeats);
}

BoundedOperands::LengthList BoundedOperands::broadcast(const std::vector<size_t>& inputs, size_t inner) {
  size_t most = 0;
  for (const size_t i : inputs) most = std::max(most, in_[i] < 0 ? 0 : rank(i));
  LengthList all;
  for (size_t axis = 0; axis + inner < most; ++axis) {
    std::vector<std::pair<size_t, int64_t>> met;
    for (const size_t i : inputs)
      if (in_[i] >= 0 && axis + rank(i) >= most)
        met.emplace_back(i, static_cast<int64_t>(axis + rank(i) - most));
    all.push_back(joined(met));
  }
  return all;
}

}  // namespace sinter::convert
