// Bounded values under other shapes: their used elements in the same order. The map of elements has no axes
// for a View, and here their lengths are expressions.
#include <fmt/format.h>

#include <algorithm>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/ir/dims.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

// Returns `v` under other lengths, where the place that each element comes from is computed at run time.
ValueId Bounded::gathered(ValueId v, std::vector<LengthId> to) {
  const Dims dims = n_.dims(v), out = maxima(to);
  const std::vector<LengthId> from = of_axes(v);
  const int64_t whole = element_count(dims);
  if (whole == 0) return with_lengths(n_.broadcast(n_.scalar(n_.dtype(v), 0), out), to);
  const auto number = [&](int64_t x) { return n_.add_constant(Constant::scalar_int(DType::kInt64, x)); };
  // This is the place among the used elements.
  ValueId place = number(0);
  LengthId stride = lengths_.constant(1);
  for (size_t i = out.size(); i-- > 0;) {
    Dims shape(out.size(), 1);
    shape[i] = out[i];
    const ValueId along = emit(ViewAttrs{IntList(shape), -1}, {index_row(n_, out[i])});
    place = emit(AddAttrs{}, {place, emit(MulAttrs{}, {along, lengths_.value(stride)})});
    stride = lengths_.mul(stride, to[i]);
  }
  // This is the place in memory.
  ValueId at = number(0);
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const ValueId count = lengths_.value(lengths_.max(from[i], lengths_.constant(1)));
    at = emit(AddAttrs{}, {at, emit(MulAttrs{}, {emit(ModAttrs{}, {place, count}), number(step)})});
    place = emit(DivAttrs{}, {place, count});
    step *= dims[i];
  }
  at = emit(MinAttrs{}, {at, number(whole - 1)});
  if (at >= 0 && n_.dims(at) != out) at = emit(BroadcastAttrs{IntList(out)}, {at});
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
  // A fixed shape needs a fixed size.
  const auto size = lengths_.known(after);
  if (size && !lengths_.known(before) && lengths_.expected(before) == size)
    if (const ValueId whole = fixed(v); !is_bounded(whole)) return reshaped(whole, std::move(to));
  const std::vector<LengthId> stated = to;
  if (before != after) {
    const LengthId same = lengths_.combine(LengthFn::kEqual, before, after);
    if (lengths_.known(same) == 0 || to.empty())
      return n_.refuse_shapes("{} elements do not fit the shape {}", lengths_.high(before),
                              lengths_.high(after)),
             kUnknown;
    // One length carries the check.
    size_t carrier = 0;
    while (carrier + 1 < to.size() && lengths_.known(to[carrier])) ++carrier;
    const int64_t elements = lengths_.high(before), dim = lengths_.high(to[carrier]);
    const int64_t most = elements == 0 ? dim : std::min(dim, elements);
    to[carrier] = check(LengthRule::kElements, to[carrier], before, after, {0, most});
  }
  const Dims dims = n_.dims(v), out = maxima(to);
  if (!plausible_dims(n_.dtype(v), out))
    return n_.refuse("a result of at most {} is too large", to_string(out)), kUnknown;
  // Runs of axes hold the same elements before and after; in each, only the outermost may have a length.
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
  return with_lengths(emit(ViewAttrs{IntList(out), -1}, {v}), to);
}

ValueId Bounded::viewed(ValueId v, const Dims& to) {
  if (v < 0) return v;
  const Dims dims = n_.dims(v);
  const std::vector<LengthId> from = of_axes(v);
  std::vector<LengthId> all;
  for (const int64_t dim : to) all.push_back(lengths_.constant(dim));
  size_t i = 0, j = 0;
  const auto unclear = [&] {
    return n_.refuse("a reshape of {}, whose length depends on data, to {} is ambiguous", to_string(dims),
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

}  // namespace sinter::convert
