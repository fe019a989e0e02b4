#include "converter/import/bounded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/ir/dims.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

CompareAttrs comparing(CompareFn fn) { return {static_cast<int64_t>(fn)}; }

// What stands at an end of a type's order: infinities, or an integer type's limits.
ConstantPtr fill_constant(DType t, double number) {
  if (is_float(t) || std::isfinite(number)) return Constant::scalar(t, number);
  const auto range = range_of_type(t);
  return Constant::scalar_int(t, !range ? (number < 0 ? 0 : -1) : number < 0 ? range->low : range->high);
}

}  // namespace

Bounded::Bounded(NodeLowering& n) : n_(n), lengths_(n.parent().lengths()) {}

bool Bounded::is_bounded(ValueId v) const { return v >= 0 && !n_.parent().graph().value(v).extents.empty(); }

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
  std::vector<std::pair<int, ValueId>> extents;
  if (n_.dims(v).size() != all.size())
    return n_.refuse("its result of {} has lengths for {} axes", to_string(n_.dims(v)), all.size()), kUnknown;
  for (size_t i = 0; i < all.size() && v >= 0; ++i) {
    const auto axis = static_cast<int64_t>(i);
    const int64_t dim = n_.dims(v)[i], high = std::max<int64_t>(lengths_.high(all[i]), 0);
    if (high < dim) v = cut(v, axis, high);
    if (high > dim) all[i] = lengths_.min(all[i], lengths_.constant(dim));
    if (!lengths_.known(all[i])) extents.emplace_back(static_cast<int>(i), lengths_.value(all[i]));
  }
  if (v < 0) return v;
  n_.parent().graph().value(v).extents = extents;
  // No constant is bounded: its elements would count as known.
  if (extents.empty() || !n_.constant(v)) return v;
  const ValueId zeroed = filled(v, 0);
  if (zeroed >= 0) n_.parent().graph().value(zeroed).extents = extents;
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
    one = emit(ViewAttrs{IntList(std::span<const int64_t>(shape)), -1}, {one});
    mask = mask == kAbsent ? one : emit(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)}, {mask, one});
  }
  if (mask == kAbsent) return v;
  const ValueId number_value = n_.add_constant(fill_constant(n_.dtype(v), number));
  const ValueId result = emit(WhereAttrs{}, {mask, v, number_value});
  if (result >= 0) n_.parent().graph().value(result).extents = n_.parent().graph().value(v).extents;
  return result;
}

ValueId Bounded::filled(ValueId v, double number) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < n_.rank(v); ++i) axes.push_back(i);
  return filled(v, axes, number);
}

ValueId Bounded::cut(ValueId v, int64_t axis, int64_t size) {
  if (v < 0 || n_.dims(v)[static_cast<size_t>(axis)] == size) return v;
  SliceAttrs a;
  const Dims dims = n_.dims(v);
  for (size_t i = 0; i < dims.size(); ++i)
    a.starts.push(0), a.steps.push(1), a.sizes.push(static_cast<int64_t>(i) == axis ? size : dims[i]);
  return emit(a, {v});
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
    SliceAttrs a;
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool here = static_cast<int64_t>(i) == axis;
      a.starts.push(here && size > 0 ? *first : 0), a.steps.push(here && size > 1 ? step : 1);
      a.sizes.push(here ? size : dims[i]);
    }
    y = emit(a, {v});
  } else {
    y = emit(GatherAttrs{axis}, {v, positions(start, step, size, dim)});
  }
  return with_lengths(y, all);
}

ValueId Bounded::indices(ValueId v, LengthId length, int64_t dim, int64_t invalid) {
  const auto known = lengths_.known(length);
  const auto extents = n_.parent().graph().value(v).extents;
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
  if (v < 0 || extents.empty()) return v;
  n_.parent().graph().value(v).extents = extents;
  return filled(v, 0);
}

// ---- checks while running

// A Gather from one element fails with any index but 0; its name says why.
LengthId Bounded::checked(LengthId length, LengthId failed, IntegerRange range, const std::string& what) {
  const std::string& name =
      n_.node().name.empty() && !n_.node().outputs.empty() ? n_.node().outputs[0] : n_.node().name;
  n_.parent().builder().set_origin({fmt::format("{}: {}", name, what), n_.node().op_type});
  // The length itself is the index that fails, so that the message has it.
  const LengthId index = lengths_.mul(failed, lengths_.max(length, lengths_.constant(1)));
  const ValueId zero = emit(GatherAttrs{0}, {n_.int64s(std::vector<int64_t>{0}), lengths_.value(index)});
  const ValueId sum = emit(AddAttrs{}, {lengths_.value(length), zero});
  n_.parent().builder().set_origin({n_.node().name, n_.node().op_type});
  return sum < 0 ? length : lengths_.symbol(sum, range);
}

LengthId Bounded::at_most(LengthId length, int64_t most, const std::string& what) {
  if (lengths_.high(length) <= most && lengths_.range(length).low >= 0) return length;
  const LengthId over = lengths_.combine(LengthFn::kLess, lengths_.constant(most), length);
  const LengthId under = lengths_.combine(LengthFn::kLess, length, lengths_.constant(0));
  return checked(length, lengths_.max(over, under),
                 {std::max<int64_t>(0, lengths_.range(length).low), std::min(most, lengths_.high(length))},
                 what);
}

LengthId Bounded::held_within(LengthId length, LengthId other, int64_t most, const std::string& what) {
  const LengthId over = lengths_.combine(LengthFn::kLess, lengths_.constant(most), other);
  return checked(length, over, lengths_.range(length), what);
}

LengthId Bounded::equal(LengthId a, LengthId b, const std::string& what) {
  if (a == b) return a;
  if (lengths_.known(a)) std::swap(a, b);
  const LengthId same = lengths_.combine(LengthFn::kEqual, a, b);
  if (lengths_.known(same) == 0) {
    n_.refuse_shapes("{}: one has at most {} elements, the other {}", what, lengths_.high(a),
                     lengths_.high(b));
    return a;
  }
  // Not known even where `b` is: a length that is known needs no value, and nothing would be checked.
  return checked(a, lengths_.sub(lengths_.constant(1), same),
                 {0, std::min(lengths_.high(a), lengths_.high(b))}, what);
}

LengthId Bounded::not_above(LengthId a, LengthId b, const std::string& what) {
  if (lengths_.never_above(a, b)) return a;
  return checked(a, lengths_.combine(LengthFn::kLess, b, a),
                 {0, std::min(lengths_.high(a), lengths_.high(b))}, what);
}

std::optional<LengthId> Bounded::with_maximum(LengthId length) {
  const auto& bounds = n_.parent().options().bounds;
  const auto given = bounds.find(n_.node().name);
  if (given != bounds.end())
    return at_most(length, given->second,
                   fmt::format("more elements than --bound {}={} plans", n_.node().name, given->second));
  if (lengths_.high(length) < Lengths::kNoMaximum) {
    return lengths_.range(length).low >= 0 ? length
                                           : at_most(length, lengths_.high(length), "a length below 0");
  }
  n_.refuse_advising(fmt::format("give its maximum with --bound {}=N", n_.node().name),
                     "the length of its result depends on data, and the model sets no maximum");
  return std::nullopt;
}

// ---- other shapes

// Element by element: where each element of the result comes from is computed while running.
ValueId Bounded::gathered(ValueId v, std::vector<LengthId> to) {
  const Dims dims = n_.dims(v), out = maxima(to);
  const std::vector<LengthId> from = of_axes(v);
  const int64_t size = element_count(out), whole = element_count(dims);
  if (whole == 0) return with_lengths(n_.broadcast(n_.scalar(n_.dtype(v), 0), out), to);
  const auto number = [&](int64_t x) { return n_.add_constant(Constant::scalar_int(DType::kInt64, x)); };
  // Place among the used elements.
  ValueId place = number(0);
  LengthId stride = lengths_.constant(1);
  for (size_t i = out.size(); i-- > 0;) {
    Dims shape(out.size(), 1);
    shape[i] = out[i];
    const ValueId along =
        emit(ViewAttrs{IntList(std::span<const int64_t>(shape)), -1}, {index_row(n_, out[i])});
    place = emit(AddAttrs{}, {place, emit(MulAttrs{}, {along, lengths_.value(stride)})});
    stride = lengths_.mul(stride, to[i]);
  }
  // Place in memory.
  ValueId at = number(0);
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const ValueId count = lengths_.value(lengths_.max(from[i], lengths_.constant(1)));
    at = emit(AddAttrs{}, {at, emit(MulAttrs{}, {emit(ModAttrs{}, {place, count}), number(step)})});
    place = emit(DivAttrs{}, {place, count});
    step *= dims[i];
  }
  at = emit(MinAttrs{}, {at, number(whole - 1)});
  if (at >= 0 && n_.size(at) != size) at = emit(BroadcastAttrs{IntList(std::span<const int64_t>(out))}, {at});
  const ValueId flat = emit(ViewAttrs{IntList{whole}, -1}, {v});
  return with_lengths(emit(GatherAttrs{0}, {flat, at}), to);
}

ValueId Bounded::reshaped(ValueId v, std::vector<LengthId> to) {
  if (v < 0 || n_.refused()) return kUnknown;
  const std::vector<LengthId> from = of_axes(v);
  const auto product = [&](const std::vector<LengthId>& all) {
    LengthId p = lengths_.constant(1);
    for (const LengthId id : all) p = lengths_.mul(p, id);
    return p;
  };
  const LengthId before = product(from), after = product(to);
  const std::vector<LengthId> stated = to;
  if (before != after) {
    const LengthId same = lengths_.combine(LengthFn::kEqual, before, after);
    if (lengths_.known(same) == 0 || to.empty())
      return n_.refuse_shapes("{} elements do not fit a shape of {}", lengths_.high(before),
                              lengths_.high(after)),
             kUnknown;
    // One length carries the check.
    size_t carrier = 0;
    while (carrier + 1 < to.size() && lengths_.known(to[carrier])) ++carrier;
    const int64_t most = std::min(lengths_.high(to[carrier]), std::max<int64_t>(lengths_.high(before), 1));
    to[carrier] = checked(to[carrier], lengths_.sub(lengths_.constant(1), same), {0, most},
                          "the new shape has another number of elements");
  }
  const Dims dims = n_.dims(v), out = maxima(to);
  if (!plausible_dims(n_.dtype(v), out))
    return n_.refuse("a result of at most {} is too large", to_string(out)), kUnknown;
  // Runs of axes that hold the same elements before and after; in each, only the outermost may have a length.
  bool direct = element_count(dims) == element_count(out) && element_count(dims) > 0;
  struct Run {
    const Dims& dims;
    const std::vector<LengthId>& lengths;
    size_t at = 0;
    int64_t size = 1;
    LengthId used = -1;
    bool outermost = true, plain = true;
  };
  Run in{dims, from}, target{out, stated};
  const auto take = [&](Run& run) {
    const LengthId length = run.lengths[run.at];
    const bool open = !lengths_.known(length);
    run.plain &= !open || run.outermost;
    run.outermost &= run.dims[run.at] == 1 && !open;
    run.size *= run.dims[run.at++];
    run.used = lengths_.mul(run.used, length);
  };
  while (direct && (in.at < dims.size() || target.at < out.size())) {
    for (Run* run : {&in, &target}) {
      run->size = 1, run->used = lengths_.constant(1), run->outermost = run->plain = true;
      if (run->at < run->dims.size()) take(*run);
    }
    while (in.size != target.size) {
      Run& shorter = in.size < target.size ? in : target;
      if (shorter.at == shorter.dims.size()) break;
      take(shorter);
    }
    direct = in.size == target.size && in.used == target.used && in.plain && target.plain;
  }
  if (!direct) return gathered(v, to);
  return with_lengths(emit(ViewAttrs{IntList(std::span<const int64_t>(out)), -1}, {v}), to);
}

ValueId Bounded::viewed(ValueId v, const Dims& to) {
  if (v < 0) return v;
  const Dims dims = n_.dims(v);
  const std::vector<LengthId> from = of_axes(v);
  std::vector<LengthId> all;
  for (const int64_t dim : to) all.push_back(lengths_.constant(dim));
  size_t i = 0, j = 0;
  const auto unclear = [&] {
    return n_.refuse("how {} with a length that depends on data becomes {} is not clear", to_string(dims),
                     to_string(to)),
           kUnknown;
  };
  if (element_count(dims) == 0) return unclear();
  while (i < dims.size() || j < to.size()) {
    int64_t p = 1, q = 1;
    LengthId whole = lengths_.constant(1);
    std::vector<size_t> targets;
    const auto take_in = [&] { whole = lengths_.mul(whole, from[i]), p *= dims[i++]; };
    const auto take_out = [&] {
      if (to[j] != 1) targets.push_back(j);
      q *= to[j++];
    };
    if (i < dims.size() && dims[i] == 1 && lengths_.known(from[i])) {
      ++i;
      continue;
    }
    if (j < to.size() && to[j] == 1) {
      ++j;
      continue;
    }
    if (i == dims.size() || j == to.size()) return unclear();
    take_in(), take_out();
    while (p != q) {
      if (p < q && i < dims.size())
        take_in();
      else if (j < to.size())
        take_out();
      else
        return unclear();
    }
    if (lengths_.known(whole)) continue;
    if (targets.empty()) return unclear();
    // The outermost target takes what the others leave.
    int64_t rest = 1;
    for (size_t t = 1; t < targets.size(); ++t) rest *= to[targets[t]];
    const LengthId outer = lengths_.div(whole, lengths_.constant(rest));
    if (lengths_.mul(outer, lengths_.constant(rest)) != whole) return unclear();
    all[targets[0]] = outer;
  }
  return reshaped(v, all);
}

ValueId Bounded::concatenated(const std::vector<ValueId>& parts, int64_t axis) {
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
      all[i] =
          equal(all[i], lengths_.of_axis(part, static_cast<int64_t>(i)), "joined values differ in length");
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
