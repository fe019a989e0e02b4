// Operators that put elements elsewhere: concat, split, slice, gather, scatter, transpose; and those whose
// result's length depends on data.
#include <algorithm>
#include <limits>

#include "converter/import/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/quantized_table.h"
#include "converter/import/lower/slice.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool lower_transpose(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  const int64_t rank = n.rank(x);
  std::vector<int64_t> perm;
  for (int64_t i = rank; i-- > 0;) perm.push_back(i);
  perm = n.attr_ints("perm", perm);
  if (static_cast<int64_t>(perm.size()) != rank)
    return n.refuse_shapes("perm [{}] does not fit {}", fmt::join(perm, ","), to_string(n.dims(x)));
  if (!n.normalize_axes(&perm, rank)) return false;
  return n.output(0, n.transpose(x, perm));
}

bool lower_concat(NodeLowering& n) {
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < n.input_count(); ++i)
    if (n.has_input(i)) inputs.push_back(n.input(i));
  if (inputs.empty()) return n.refuse("has no input");
  if (!n.has_attr("axis") && n.opset() >= 4) return n.refuse("has no attribute axis");
  // Shape arithmetic of some exporters joins scalars with vectors: a scalar is a vector of one.
  bool vectors = false;
  for (const ValueId v : inputs) vectors |= n.rank(v) == 1;
  for (ValueId& v : inputs) {
    if (n.rank(v) > 0 || !vectors) continue;
    n.warn("joins a scalar with vectors; the scalar is taken as a vector of one");
    v = n.reshape(v, {1});
  }
  int64_t axis = n.attr_int("axis", 1);
  if (!n.normalize_axis(&axis, n.rank(inputs[0]))) return false;
  if (inputs.size() == 1) return n.output(0, inputs[0]);
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (n.rank(inputs[i]) != n.rank(inputs[0]))
      return n.refuse_shapes("inputs {} and {} have different ranks", to_string(n.dims(inputs[0])),
                             to_string(n.dims(inputs[i])));
    if (n.dtype(inputs[i]) != n.dtype(inputs[0]) && !n.promote(&inputs[0], &inputs[i])) return false;
  }
  for (ValueId& v : inputs) v = n.cast(v, n.dtype(inputs[0]));
  return n.output(0, joined(n, inputs, axis));
}

// Where the axis or a size depends on data; nullopt: neither does.
std::optional<bool> split_bounded(NodeLowering& n, ValueId x, int64_t axis, int64_t parts) {
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const LengthId length = lengths.of_axis(x, axis);
  std::vector<LengthId> sizes;
  if (n.has_attr("split")) {
    for (const int64_t size : n.attr_ints("split")) sizes.push_back(lengths.constant(size));
  } else if (n.has_input(1)) {
    const auto items = lengths.items(n.input(1));
    if (!items) return std::nullopt;
    sizes = *items;
  } else {
    const LengthId count = lengths.constant(parts);
    const LengthId part = lengths.div(lengths.add(length, lengths.constant(parts - 1)), count);
    for (int64_t i = 0; i < parts; ++i)
      sizes.push_back(lengths.min(
          part,
          lengths.max(lengths.sub(length, lengths.mul(part, lengths.constant(i))), lengths.constant(0))));
  }
  const bool fixed =
      std::all_of(sizes.begin(), sizes.end(), [&](LengthId id) { return lengths.known(id).has_value(); });
  if (lengths.known(length) && fixed) return std::nullopt;
  if (static_cast<int64_t>(sizes.size()) != parts)
    return n.refuse("{} sizes for {} outputs", sizes.size(), parts);
  LengthId start = lengths.constant(0);
  for (const LengthId size : sizes) start = lengths.add(start, size);
  // The first part holds the others to the whole.
  const LengthId whole = b.equal(start, length);
  start = lengths.constant(0);
  const int64_t dim = n.dims(x)[static_cast<size_t>(axis)];
  for (size_t i = 0; i < sizes.size(); ++i) {
    LengthId size = b.at_most(sizes[i], dim, LengthRule::kWithin);
    if (whole != length && !(lengths.known(whole) && lengths.known(length))) size = b.not_above(size, whole);
    if (n.wants_output(i) && !n.output(i, b.section(x, axis, start, 1, size))) return false;
    start = lengths.add(start, sizes[i]);
  }
  n.ignore_attr("num_outputs");
  return true;
}

// Sizes by input (1, 13+), by attribute (2 to 12), or as equal as can be.
bool lower_split(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  const auto parts = static_cast<int64_t>(n.output_count());
  if (const auto done = split_bounded(n, x, axis, parts)) return *done;
  const int64_t length = n.dims(x)[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes;
  if (n.has_attr("split")) {
    sizes = n.attr_ints("split");
  } else if (n.has_input(1)) {
    const auto items = n.constant_ints(1);
    if (!items) return false;
    sizes = *items;
  } else {
    const int64_t count = n.attr_int("num_outputs", parts);
    if (count != parts || count < 1)
      return n.refuse("num_outputs is {}, but it has {} outputs", count, parts);
    if (!n.has_attr("num_outputs") && length % count != 0)
      return n.refuse_shapes("{} elements do not split into {} equal parts", length, count);
    const int64_t part = (length + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) sizes.push_back(std::clamp<int64_t>(length - i * part, 0, part));
  }
  if (static_cast<int64_t>(sizes.size()) != parts)
    return n.refuse("{} sizes for {} outputs", sizes.size(), parts);
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > length - start)
      return n.refuse_shapes("sizes [{}] do not add up to {}", fmt::join(sizes, ","), length);
    if (n.wants_output(i) && !n.output(i, n.slice(x, axis, start, sizes[i]))) return false;
    start += sizes[i];
  }
  if (start != length)
    return n.refuse_shapes("sizes [{}] do not add up to {}", fmt::join(sizes, ","), length);
  return true;
}

// Where an axis, a start or an end depends on data.
bool slice_bounded(NodeLowering& n, ValueId x, const std::vector<int64_t>& starts,
                   const std::vector<int64_t>& ends, std::vector<int64_t> axes, std::vector<int64_t> steps) {
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const auto all_of = [&](size_t input, const std::vector<int64_t>& given) {
    std::vector<LengthId> all;
    for (const int64_t i : given) all.push_back(lengths.constant(i));
    return given.empty() && n.has_input(input) ? *lengths.items(n.input(input)) : all;
  };
  const std::vector<LengthId> first = all_of(1, starts), last = all_of(2, ends);
  if (axes.empty())
    for (size_t i = 0; i < first.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (steps.empty()) steps.assign(first.size(), 1);
  if (last.size() != first.size() || axes.size() != first.size() || steps.size() != first.size())
    return n.refuse("{} starts, {} ends, {} axes, {} steps", first.size(), last.size(), axes.size(),
                    steps.size());
  if (!n.normalize_axes(&axes, n.rank(x))) return false;
  const LengthId zero = lengths.constant(0);
  std::vector<int64_t> extents = running_extents(n);
  extents.resize(axes.size(), -1);
  // The same with a fixed size, for what needs one.
  ValueId y = x, fixed = x;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return n.refuse("step 0 along axis {}", axes[i]);
    const LengthId length = lengths.of_axis(x, axes[i]);
    const int64_t dim = n.dims(x)[static_cast<size_t>(axes[i])],
                  step = std::clamp<int64_t>(steps[i], -(dim + 1), dim + 1);
    // Negative ends count from the length; beyond the axis they stop at it.
    const auto within = [&](LengthId at, LengthId low, LengthId high) {
      const LengthId below = lengths.combine(LengthFn::kLess, at, zero);
      return lengths.max(lengths.min(lengths.add(at, lengths.mul(below, length)), high), low);
    };
    const LengthId before = lengths.constant(-1), top = lengths.sub(length, lengths.constant(1));
    const LengthId begin = step > 0 ? within(first[i], zero, length) : within(first[i], before, top);
    const LengthId end = step > 0 ? within(last[i], zero, length) : within(last[i], before, top);
    LengthId span = step > 0 ? lengths.sub(end, begin) : lengths.sub(begin, end);
    // What the ends are apart bounds it, whatever the length.
    if (step > 0 && lengths.range(first[i]).low >= 0 && lengths.range(last[i]).low >= 0)
      span = lengths.min(span, lengths.sub(last[i], first[i]));
    const bool runs = extents[i] > 0 && extents[i] <= dim && step > 0 && lengths.known(length);
    if (step > 0 && extents[i] >= 0) span = lengths.min(span, lengths.constant(extents[i]));
    const int64_t stride = step > 0 ? step : -step;
    const LengthId count = lengths.div(lengths.add(lengths.max(span, zero), lengths.constant(stride - 1)),
                                       lengths.constant(stride));
    if (step == 1 && lengths.known(first[i]) == 0 && count == length) continue;
    // A start beyond the length leaves no element, so that a known one need not be held within it.
    const auto known = lengths.known(first[i]);
    const LengthId start = known && *known >= 0 && step > 0 ? lengths.constant(std::min(*known, dim)) : begin;
    y = b.section(y, axes[i], start, step, count);
    if (!runs) {
      fixed = b.section(fixed, axes[i], start, step, count);
      continue;
    }
    const LengthId size = lengths.constant((extents[i] + stride - 1) / stride);
    lengths.expect_size(count, *lengths.known(size));
    const LengthId held = b.check(LengthRule::kPart, first[i], count, size, lengths.range(first[i]));
    fixed = b.section(fixed, axes[i], within(held, zero, length), step, size);
  }
  if (fixed >= 0 && b.is_bounded(y) && !b.is_bounded(fixed)) lengths.give_fixed_form(y, fixed);
  return n.output(0, y);
}

bool lower_slice(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  const Dims d = n.dims(x);
  const auto rank = static_cast<int64_t>(d.size());
  std::vector<int64_t> starts, ends, axes, steps;
  Bounded b(n);
  bool open = false;
  if (n.has_attr("starts")) {
    starts = n.attr_ints("starts"), ends = n.attr_ints("ends"), axes = n.attr_ints("axes");
  } else {
    std::vector<int64_t>* const lists[] = {&starts, &ends, &axes, &steps};
    for (size_t i = 1; i <= 4; ++i) {
      if (!n.has_input(i)) {
        if (i <= 2) return n.refuse("has no {}", i == 1 ? "starts" : "ends");
        continue;
      }
      if (i <= 2 && (b.is_bounded(x) || !b.lengths().known_items(n.input(i)))) {
        if (!b.lengths().items(n.input(i))) return n.constant_ints(i).has_value();
        open = true;
        continue;
      }
      const auto items = n.constant_ints(i);
      if (!items) return false;
      *lists[i - 1] = *items;
    }
  }
  if (b.is_bounded(x) || open) return slice_bounded(n, x, starts, ends, axes, steps);
  if (axes.empty())
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return n.refuse("{} starts, {} ends, {} axes, {} steps", starts.size(), ends.size(), axes.size(),
                    steps.size());
  if (!n.normalize_axes(&axes, rank)) return false;
  SliceAttrs a;
  for (const int64_t dim : d) a.starts.push(0), a.steps.push(1), a.sizes.push(dim);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t dim = d[static_cast<size_t>(axes[i])];
    if (steps[i] == 0) return n.refuse("step 0 along axis {}", axes[i]);
    const SliceRange r = slice_range(starts[i], ends[i], steps[i], dim);
    const auto at = static_cast<int>(axes[i]);
    a.starts[at] = r.begin, a.sizes[at] = r.count, a.steps[at] = r.step;
  }
  if (std::equal(d.begin(), d.end(), a.sizes.begin()) &&
      std::all_of(a.steps.begin(), a.steps.end(), [](int64_t s) { return s == 1; }))
    return n.output(0, x);
  return n.output(0, n.emit(a, {x}));
}

// Where an axis or a number of repeats depends on data: element i comes from i modulo the length.
bool tile_bounded(NodeLowering& n, ValueId x) {
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const std::vector<LengthId> repeats = *lengths.items(n.input(1));
  if (static_cast<int64_t>(repeats.size()) != n.rank(x))
    return n.refuse_shapes("{} repeats for rank {}", repeats.size(), n.rank(x));
  ValueId y = x;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (lengths.known(repeats[i]) == 1) continue;
    std::vector<LengthId> all = b.of_axes(y);
    const LengthId length = all[i];
    const auto count = b.with_maximum(lengths.mul(length, repeats[i]));
    if (!count) return false;
    all[i] = *count;
    const ValueId from = b.emit(ModAttrs{}, {index_row(n, lengths.high(*count)),
                                             lengths.value(lengths.max(length, lengths.constant(1)))});
    y = b.with_lengths(b.emit(GatherAttrs{axis}, {y, from}), all);
  }
  return n.output(0, y);
}

// Tile-1 repeats along one axis.
bool lower_tile(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent || !n.has_input(1)) return n.refuse("needs two inputs");
  std::vector<int64_t> repeats;
  if (n.opset() >= 6 && (Bounded(n).is_bounded(x) || !n.parent().lengths().known_items(n.input(1))))
    if (n.parent().lengths().items(n.input(1))) return tile_bounded(n, x);
  const auto given = n.constant_ints(1);
  if (!given) return false;
  if (n.opset() < 6 && n.has_input(2)) {
    auto axis = n.constant_int(2);
    if (!axis || !n.normalize_axis(&*axis, n.rank(x))) return false;
    if (given->size() != 1) return n.refuse_shapes("{} repeats for one axis", given->size());
    repeats.assign(static_cast<size_t>(n.rank(x)), 1);
    repeats[static_cast<size_t>(*axis)] = given->front();
  } else {
    repeats = *given;
  }
  if (static_cast<int64_t>(repeats.size()) != n.rank(x))
    return n.refuse_shapes("{} repeats for rank {}", repeats.size(), n.rank(x));
  if (std::all_of(repeats.begin(), repeats.end(), [](int64_t r) { return r == 1; })) return n.output(0, x);
  return n.output(0, n.emit(TileAttrs{int_list(repeats)}, {x}));
}

// Indices as the kernels take them; constant ones are checked against the axis now.
ValueId indices_for(NodeLowering& n, ValueId indices, int64_t length) {
  if (indices < 0) return indices;
  const DType t = n.dtype(indices);
  if (!is_integer(t)) return n.refuse("indices of type {}", dtype_name(t)), kUnknown;
  if (const ConstantPtr c = n.constant(indices))
    for (const int64_t i : c->as_int64s())
      if (i < -length || i >= length)
        return n.refuse_advising("store indices that lie within the axis",
                                 "index {} is outside an axis of {}", i, length),
               kUnknown;
  return t == DType::kInt32 || t == DType::kInt64 ? indices : n.cast(indices, DType::kInt64);
}

bool lower_gather(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent || !n.has_input(1)) return n.refuse("needs two inputs");
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  const ValueId indices = indices_for(n, n.input(1), n.dims(x)[static_cast<size_t>(axis)]);
  if (indices == kUnknown) return false;
  // One known index is a slice.
  const bool open = !n.parent().lengths().known(n.parent().lengths().of_axis(x, axis));
  if (const ConstantPtr c = n.constant(indices); c && c->size() == 1 && !open) {
    const int64_t length = n.dims(x)[static_cast<size_t>(axis)], i = c->as_int64s()[0];
    Dims d = n.dims(x);
    d.erase(d.begin() + axis);
    d.insert(d.begin() + axis, static_cast<size_t>(n.rank(indices)), 1);
    const ValueId one = n.slice(x, axis, i < 0 ? i + length : i, 1);
    if (!Bounded(n).is_bounded(x)) return n.output(0, n.reshape(one, d));
    std::vector<LengthId> all = n.parent().lengths().of_axes(x);
    all.erase(all.begin() + axis);
    all.insert(all.begin() + axis, static_cast<size_t>(n.rank(indices)), n.parent().lengths().constant(1));
    return n.output(0, Bounded(n).reshaped(one, all));
  }
  if (const ValueId y = open ? kAbsent : gather_dequantized(n, x, axis, indices); y != kAbsent)
    return n.output(0, y);
  return n.output(0, n.emit(GatherAttrs{axis}, {x, indices}));
}

bool lower_gather_elements(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent || !n.has_input(1)) return n.refuse("needs two inputs");
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  return n.output(0, n.emit(GatherElementsAttrs{axis},
                            {x, indices_for(n, n.input(1), n.dims(x)[static_cast<size_t>(axis)])}));
}

constexpr int64_t kAnyLength = std::numeric_limits<int64_t>::max();

bool lower_gather_nd(NodeLowering& n) {
  if (!n.has_input(1)) return n.refuse("needs two inputs");
  const int64_t batch = n.attr_int("batch_dims", 0);
  return n.output(0, n.emit(GatherNdAttrs{batch}, {n.input(0), indices_for(n, n.input(1), kAnyLength)}));
}

std::optional<int64_t> scatter_reduction(NodeLowering& n) {
  const std::string name = n.attr_string("reduction", "none");
  constexpr std::string_view kNames[] = {"none", "add", "mul", "max", "min"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<int64_t>(i);
  n.refuse("reduction '{}' is unknown", name);
  return std::nullopt;
}

bool lower_scatter_elements(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent || !n.has_input(2)) return n.refuse("needs three inputs");
  int64_t axis = n.attr_int("axis", 0);
  if (!n.normalize_axis(&axis, n.rank(x))) return false;
  const auto reduction = scatter_reduction(n);
  if (!reduction) return false;
  return n.output(0, n.emit(ScatterElementsAttrs{axis, *reduction},
                            {x, indices_for(n, n.input(1), n.dims(x)[static_cast<size_t>(axis)]),
                             n.cast(n.input(2), n.dtype(x))}));
}

bool lower_scatter_nd(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent || !n.has_input(2)) return n.refuse("needs three inputs");
  const auto reduction = scatter_reduction(n);
  if (!reduction) return false;
  return n.output(0, n.emit(ScatterNdAttrs{*reduction},
                            {x, indices_for(n, n.input(1), kAnyLength), n.cast(n.input(2), n.dtype(x))}));
}

bool lower_tensor_scatter(NodeLowering& n) {
  const ValueId past = n.input(0);
  if (past == kAbsent || !n.has_input(1)) return n.refuse("needs two inputs");
  int64_t axis = n.attr_int("axis", -2);
  if (!n.normalize_axis(&axis, n.rank(past))) return false;
  const std::string mode = n.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") return n.refuse("mode is '{}'", mode);
  std::vector<ValueId> inputs{past, n.cast(n.input(1), n.dtype(past))};
  if (n.has_input(2)) inputs.push_back(n.input(2));
  return n.output(0, n.emit(CacheUpdateAttrs{axis, mode == "circular"}, inputs));
}

bool lower_reverse_sequence(NodeLowering& n) {
  const ValueId x = n.input(0);
  int64_t time = n.attr_int("time_axis", 0), batch = n.attr_int("batch_axis", 1);
  if (!n.normalize_axis(&time, n.rank(x)) || !n.normalize_axis(&batch, n.rank(x))) return false;
  return n.output(0, n.emit(ReverseSequenceAttrs{time, batch}, {x, n.input(1)}));
}

// ---- lengths that depend on data

bool lower_non_zero(NodeLowering& n) {
  const std::vector<ValueId> r = n.emit_many(NonZeroAttrs{}, {n.input(0)}, 2);
  return n.output(0, bounded(n, r[0], 1, r[1]));
}

bool lower_compress(NodeLowering& n) {
  ValueId x = n.input(0), condition = n.input(1);
  if (x == kAbsent || condition == kAbsent) return n.refuse("needs two inputs");
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    axis = n.attr_int("axis", 0);
    if (!n.normalize_axis(&axis, n.rank(x))) return false;
  } else {
    x = n.reshape(x, {n.size(x)});
  }
  if (x < 0) return false;
  if (n.rank(condition) != 1) return n.refuse("condition must have one dim, not {}", n.rank(condition));
  Bounded b(n);
  const int64_t length = std::min(n.size(condition), n.dims(x)[static_cast<size_t>(axis)]);
  condition = b.cut(b.filled(as_bool(n, condition), 0), 0, length);
  const std::vector<ValueId> r = n.emit_padded(NonZeroAttrs{}, {condition}, {true, true});
  ValueId index = n.reshape(r[0], {length});
  if (n.constant(r[1]) && n.constant(index))
    index = n.slice(index, 0, 0, n.constant(r[1])->as_int64s()[0]);
  else
    index = bounded(n, index, 0, r[1]);
  return n.output(0, n.emit(GatherAttrs{axis}, {x, index}));
}

bool lower_unique(NodeLowering& n) {
  UniqueAttrs a;
  a.sorted = n.attr_int("sorted", 1);
  int64_t axis = 0;
  if (n.has_attr("axis")) {
    axis = n.attr_int("axis", 0);
    if (!n.normalize_axis(&axis, n.rank(n.input(0)))) return false;
    a.axis = axis;
  }
  const std::vector<ValueId> r = n.emit_many(a, {n.input(0)}, 5);
  if (r[0] == kUnknown) return false;
  n.output(0, bounded(n, r[0], axis, r[4]));
  n.output(1, bounded(n, r[1], 0, r[4]));
  n.output(2, r[2]);
  return n.output(3, bounded(n, r[3], 0, r[4]));
}

// com.microsoft: in the order of first occurrence; the distinct elements, where each element is among them,
// how often each occurs.
bool lower_microsoft_unique(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (n.rank(x) != 1) return n.refuse_shapes("its input must have rank 1, not {}", n.rank(x));
  UniqueAttrs a;
  a.sorted = 0;
  const std::vector<ValueId> r = n.emit_many(a, {x}, 5);
  if (r[0] == kUnknown) return false;
  n.output(0, bounded(n, r[0], 0, r[4]));
  n.output(1, r[2]);
  return n.output(2, bounded(n, r[3], 0, r[4]));
}

}  // namespace

ValueId joined(NodeLowering& n, std::vector<ValueId> parts, int64_t axis) {
  constexpr size_t kMost = 128;  // operands of a step
  while (parts.size() > 1 && !n.refused()) {
    std::vector<ValueId> fewer;
    for (size_t i = 0; i < parts.size(); i += kMost) {
      const std::vector<ValueId> some(
          parts.begin() + static_cast<std::ptrdiff_t>(i),
          parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), i + kMost)));
      fewer.push_back(some.size() == 1 ? some[0] : n.emit(ConcatAttrs{axis}, some));
    }
    parts = std::move(fewer);
  }
  return n.refused() ? kUnknown : parts[0];
}

std::span<const LowerRule> movement_rules() {
  static constexpr LowerRule kRules[] = {
      {"Transpose", lower_transpose},
      {"Concat", lower_concat},
      {"Split", lower_split},
      {"Slice", lower_slice},
      {"Tile", lower_tile},
      {"Gather", lower_gather},
      {"GatherElements", lower_gather_elements},
      {"GatherND", lower_gather_nd},
      {"GatherND", lower_gather_nd, kMicrosoft},
      {"Scatter", lower_scatter_elements},
      {"ScatterElements", lower_scatter_elements},
      {"ScatterND", lower_scatter_nd},
      {"TensorScatter", lower_tensor_scatter},
      {"ReverseSequence", lower_reverse_sequence},
      {"NonZero", lower_non_zero},
      {"Compress", lower_compress},
      {"Unique", lower_unique},
      {"Unique", lower_microsoft_unique, kMicrosoft},
  };
  return kRules;
}

}  // namespace sinter::convert
