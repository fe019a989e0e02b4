#include "converter/import/lengths/bounded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/flow/slice_along.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/ir/dims.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

CompareAttrs comparing(CompareFn fn) { return {static_cast<int64_t>(fn)}; }

// Returns a fill; infinities are the ends of an integer type.
ConstantPtr fill_constant(DType t, double number) {
  if (is_float(t) || std::isfinite(number)) return Constant::scalar(t, number);
  const auto range = range_of_type(t);
  return Constant::scalar_int(t, !range ? (number < 0 ? 0 : -1) : number < 0 ? range->low : range->high);
}

// Returns the number that all elements of a constant of integers or truths are.
std::optional<int64_t> one_number(const Constant& c) {
  if ((!is_integer(c.dtype()) && c.dtype() != DType::kBool) || c.size() == 0) return std::nullopt;
  const std::vector<int64_t> numbers = c.as_int64s();
  const auto same = std::count(numbers.begin(), numbers.end(), numbers[0]);
  return same == static_cast<std::ptrdiff_t>(numbers.size()) ? std::optional(numbers[0]) : std::nullopt;
}

}  // namespace

Bounded::Bounded(NodeLowering& n) : n_(n), lengths_(n.parent().lengths()) {}

bool Bounded::is_bounded(ValueId v) const {
  return v >= 0 && !n_.parent().graph().value(v).bounded_dims.empty();
}

ValueId Bounded::emit(OpAttrs attrs, std::vector<ValueId> inputs) {
  return n_.emit_padded(std::move(attrs), std::move(inputs), {true})[0];
}

std::vector<LengthId> Bounded::of_axes(ValueId v) {
  return v < 0 ? std::vector<LengthId>() : lengths_.of_axes(v);
}

Dims Bounded::maxima(const std::vector<LengthId>& all) {
  Dims dims;
  for (const LengthId id : all) dims.push_back(std::max<int64_t>(lengths_.high(id), 0));
  return dims;
}

ValueId Bounded::with_lengths(ValueId v, std::vector<LengthId> all) {
  if (v < 0) return v;
  std::vector<BoundedDim> bounded;
  if (n_.dims(v).size() != all.size())
    return n_.refuse("its result of {} has lengths for {} axes", to_string(n_.dims(v)), all.size()), kUnknown;
  for (size_t i = 0; i < all.size() && v >= 0; ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t dim = n_.dims(v)[i], high = std::max<int64_t>(lengths_.high(all[i]), 0);
    if (high < dim) v = cut(v, axis, high);
    if (high > dim) all[i] = lengths_.min(all[i], lengths_.constant(dim));
    if (!lengths_.known(all[i])) bounded.push_back({static_cast<int>(i), lengths_.value(all[i])});
  }
  if (v < 0) return v;
  n_.parent().graph().value(v).bounded_dims = bounded;
  // No constant is bounded: its elements would count as known.
  if (bounded.empty() || !n_.constant(v)) return v;
  const ValueId zeroed = filled(v, 0);
  if (zeroed < 0) return zeroed;
  n_.parent().graph().value(zeroed).bounded_dims = bounded;
  if (const auto number = one_number(*n_.constant(v))) lengths_.give_uniform(zeroed, *number);
  return zeroed;
}

ValueId Bounded::used(LengthId length, int64_t dim) {
  return emit(comparing(CompareFn::kLess), {index_row(n_, dim), lengths_.value(length)});
}

ValueId Bounded::filled(ValueId v, const std::vector<int64_t>& axes, double number) {
  if (v < 0) return v;
  const Dims dims = n_.dims(v);
  ValueId mask = kAbsent;
  for (const int64_t axis : axes) {
    const LengthId length = lengths_.of_axis(v, axis);
    if (lengths_.known(length)) continue;
    Dims shape(dims.size(), 1);
    shape[static_cast<size_t>(axis)] = dims[static_cast<size_t>(axis)];
    ValueId one = used(length, dims[static_cast<size_t>(axis)]);
    one = emit(ViewAttrs{IntList(shape), -1}, {one});
    mask = mask == kAbsent ? one : emit(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)}, {mask, one});
  }
  if (mask == kAbsent) return v;
  const ValueId number_value = n_.add_constant(fill_constant(n_.dtype(v), number));
  const ValueId result = emit(WhereAttrs{}, {mask, v, number_value});
  if (result >= 0) n_.parent().graph().value(result).bounded_dims = n_.parent().graph().value(v).bounded_dims;
  return result;
}

ValueId Bounded::filled(ValueId v, double number) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n_.rank(v); ++i) axes.push_back(i);
  return filled(v, axes, number);
}

ValueId Bounded::cut(ValueId v, int64_t axis, int64_t size) {
  if (v < 0 || n_.dims(v)[static_cast<size_t>(axis)] == size) return v;
  return emit(slice_along(n_.dims(v), static_cast<size_t>(axis), 0, size), {v});
}

ValueId Bounded::positions(LengthId start, int64_t step, int64_t size, int64_t dim) {
  const ValueId factor = n_.add_constant(Constant::scalar_int(DType::kInt64, step));
  ValueId at = step == 1 ? index_row(n_, size) : emit(MulAttrs{}, {index_row(n_, size), factor});
  if (lengths_.known(start) != 0) at = emit(AddAttrs{}, {at, lengths_.value(start)});
  const ValueId last = n_.add_constant(Constant::scalar_int(DType::kInt64, std::max<int64_t>(dim - 1, 0)));
  at = emit(MinAttrs{}, {at, last});
  return emit(MaxAttrs{}, {at, n_.add_constant(Constant::scalar_int(DType::kInt64, 0))});
}

ValueId Bounded::section(ValueId v, int64_t axis, LengthId start, int64_t step, LengthId count) {
  if (v < 0) return v;
  const Dims dims = n_.dims(v);
  const int64_t dim = dims[static_cast<size_t>(axis)],
                size = std::clamp<int64_t>(lengths_.high(count), 0, dim);
  std::vector<LengthId> all = of_axes(v);
  all[static_cast<size_t>(axis)] = count;
  const auto first = lengths_.known(start);
  ValueId y;
  if (size == 0 ||
      (first && *first >= 0 && *first + (size - 1) * step < dim && *first + (size - 1) * step >= 0)) {
    const int64_t begin = size > 0 ? *first : 0;
    y = emit(slice_along(dims, static_cast<size_t>(axis), begin, size, size > 1 ? step : 1), {v});
  } else {
    y = emit(GatherAttrs{axis}, {v, positions(start, step, size, dim)});
  }
  return with_lengths(y, all);
}

ValueId Bounded::indices(ValueId v, LengthId length, int64_t dim, int64_t invalid) {
  if (v < 0) return v;
  const auto known = lengths_.known(length);
  const auto bounded = n_.parent().graph().value(v).bounded_dims;
  if (!known || *known != dim) {
    v = n_.cast(v, DType::kInt64);
    const ValueId zero = n_.add_constant(Constant::scalar_int(DType::kInt64, 0)),
                  count = lengths_.value(length);
    const ValueId below = emit(comparing(CompareFn::kLess), {v, zero});
    v = emit(WhereAttrs{}, {below, emit(AddAttrs{}, {v, count}), v});
    const ValueId outside = emit(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kOr)},
                                 {emit(comparing(CompareFn::kLess), {v, zero}),
                                  emit(comparing(CompareFn::kGreaterOrEqual), {v, count})});
    v = emit(WhereAttrs{}, {outside, n_.add_constant(Constant::scalar_int(DType::kInt64, invalid)), v});
  }
  if (v < 0 || bounded.empty()) return v;
  n_.parent().graph().value(v).bounded_dims = bounded;
  return filled(v, 0);
}

ValueId Bounded::concatenated(std::vector<ValueId> parts, int64_t axis) {
  if (std::any_of(parts.begin(), parts.end(), [](ValueId part) { return part < 0; })) return kUnknown;
  for (int64_t i = 0; i < n_.rank(parts[0]); ++i) {
    std::vector<std::pair<ValueId*, int64_t>> met;
    for (ValueId& part : parts) met.emplace_back(&part, i);
    if (i != axis) fix_beside_fixed(met, false);
  }
  std::vector<LengthId> all = of_axes(parts[0]);
  LengthId sum = lengths_.constant(0);
  bool gaps = false;
  std::vector<ValueId> masks;
  for (const ValueId part : parts) {
    const LengthId length = lengths_.of_axis(part, axis);
    gaps |= !lengths_.known(sum);
    sum = lengths_.add(sum, length);
    const int64_t dim = n_.dims(part)[static_cast<size_t>(axis)];
    masks.push_back(used(length, dim));
  }
  // The other axes must agree.
  std::vector<ValueId> cut_parts = parts;
  for (size_t i = 0; i < all.size(); ++i) {
    if (static_cast<int64_t>(i) == axis) continue;
    int64_t least = n_.dims(parts[0])[i];
    for (const ValueId part : parts) {
      least = std::min(least, n_.dims(part)[i]);
      all[i] = equal(all[i], lengths_.of_axis(part, static_cast<int64_t>(i)));
    }
    for (ValueId& part : cut_parts) part = cut(part, static_cast<int64_t>(i), least);
  }
  all[static_cast<size_t>(axis)] = sum;
  ValueId y = emit(ConcatAttrs{axis}, cut_parts);
  if (gaps) {
    const std::vector<ValueId> found =
        n_.emit_padded(NonZeroAttrs{}, {emit(ConcatAttrs{0}, masks)}, {true, false});
    if (found[0] < 0) return kUnknown;
    y = emit(GatherAttrs{axis}, {y, emit(ViewAttrs{IntList{n_.size(found[0])}, -1}, {found[0]})});
  }
  return with_lengths(y, all);
}

}  // namespace sinter::convert
