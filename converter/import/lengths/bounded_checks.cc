// Run-time checks of lengths: the steps that are emitted where two lengths are not proven to agree.
#include <fmt/format.h>

#include <algorithm>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

LengthId Bounded::check(LengthRule rule, LengthId length, LengthId found, LengthId limit,
                        IntegerRange range) {
  n_.parent().builder().set_origin({n_.node().name, n_.node().op_type});
  const ValueId held = emit(CheckLengthAttrs{static_cast<int64_t>(rule)},
                            {lengths_.value(length), lengths_.value(found), lengths_.value(limit)});
  if (held < 0) return length;
  const LengthId symbol = lengths_.symbol(held, range);
  lengths_.inherit_names(symbol, lengths_.given_names(length));
  if (const auto size = lengths_.expected(length)) lengths_.expect_size(symbol, *size);
  return symbol;
}

LengthId Bounded::held_within(LengthRule rule, LengthId length, LengthId found, LengthId limit,
                              IntegerRange range) {
  const IntegerRange a = lengths_.range(found), b = lengths_.range(limit);
  if (a.low >= 0 && lengths_.never_above(found, limit)) return length;
  if (a.high >= 0 && a.low <= b.high) return check(rule, length, found, limit, range);
  n_.refuse_shapes("a length of {} is never within 0 to {}", a.high < 0 ? a.high : a.low, b.high);
  return length;
}

LengthId Bounded::at_most(LengthId length, int64_t most, LengthRule rule) {
  const IntegerRange all = lengths_.range(length);
  return held_within(rule, length, length, lengths_.constant(most),
                     {std::max<int64_t>(0, all.low), std::min(most, all.high)});
}

LengthId Bounded::held_to_plan(LengthId length, LengthId longest, int64_t most) {
  return held_within(LengthRule::kPlanned, length, longest, lengths_.constant(most), lengths_.range(length));
}

LengthId Bounded::not_above(LengthId a, LengthId b) {
  return held_within(LengthRule::kWithin, a, a, b, {0, std::min(lengths_.high(a), lengths_.high(b))});
}

LengthId Bounded::equal(LengthId a, LengthId b) {
  if (a == b) return a;
  if (lengths_.known(a)) std::swap(a, b);
  if (lengths_.known(lengths_.combine(LengthFn::kEqual, a, b)) == 0) {
    n_.refuse_shapes("lengths of one axis differ: one has at most {} elements, the other {}",
                     lengths_.high(a), lengths_.high(b));
    return a;
  }
  // The result is not known even where `b` is: a length that is known needs no value, and nothing would be
  // checked.
  return check(LengthRule::kMeet, a, a, b, {0, std::min(lengths_.high(a), lengths_.high(b))});
}

std::optional<LengthId> Bounded::with_maximum(LengthId length) {
  const auto& bounds = n_.parent().options().bounds;
  const auto given = bounds.find(n_.node().name);
  if (given != bounds.end()) return at_most(length, given->second, LengthRule::kPlanned);
  if (lengths_.high(length) <= kLongestAxis)
    return lengths_.range(length).low >= 0 ? length
                                           : at_most(length, lengths_.high(length), LengthRule::kPlanned);
  std::string advice = fmt::format("give its maximum with --bound {}=N", n_.node().name);
  if (const std::string fixed = n_.parent().fixing_advice(lengths_.value(length)); fixed.starts_with("give "))
    advice += fmt::format(", or {} to fix it", fixed);
  if (lengths_.high(length) < Lengths::kNoMaximum)
    n_.refuse_advising(std::move(advice),
                       "the length of its result depends on data, and may be {}; at most {} can be planned",
                       lengths_.high(length), kLongestAxis);
  else
    n_.refuse_advising(std::move(advice),
                       "the length of its result depends on data, and the model sets no maximum");
  return std::nullopt;
}

ValueId Bounded::fixed(ValueId v, std::optional<int64_t> only) {
  if (v < 0) return v;
  const Value value = n_.parent().graph().value(v);
  if (const ValueId form = lengths_.fixed_form(v); form >= 0 && value.bounded_dims.size() == 1)
    return !only || *only == value.bounded_dims[0].axis ? form : v;
  for (const auto& [axis, count] : value.bounded_dims) {
    if (only && axis != *only) continue;
    const LengthId length = lengths_.of_axis(v, axis);
    const auto size = lengths_.expected(length);
    if (!size || *size > value.dims[static_cast<size_t>(axis)] || *size < 0) continue;
    const LengthId whole = lengths_.constant(*size);
    // The positions read the checked length, which is what is taken off again.
    const LengthId held = check(LengthRule::kElements, length, length, whole, {0, *size});
    v = section(v, axis, lengths_.sub(held, whole), 1, whole);
  }
  return v;
}

void Bounded::fix_beside_fixed(const std::vector<std::pair<ValueId*, int64_t>>& met, bool repeats) {
  for (const auto& [v, axis] : met) {
    if (!is_bounded(*v)) continue;
    const LengthId own = lengths_.of_axis(*v, axis);
    const auto size = lengths_.expected(own);
    if (!size || lengths_.known(own)) continue;
    const bool beside_fixed = std::any_of(met.begin(), met.end(), [&, size = *size](const auto& other) {
      const auto number = lengths_.known(lengths_.of_axis(*other.first, other.second));
      return repeats && size == 1 ? number > 1 : number == size && !(repeats && number == 1);
    });
    if (beside_fixed) *v = fixed(*v, axis);
  }
}

}  // namespace sinter::convert
