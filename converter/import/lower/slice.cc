// Parts of a value, and repeats: Split, Slice, Tile.
#include "converter/import/lower/slice.h"

#include <algorithm>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Splits where the axis or a size depends on data; nullopt: neither does.
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

// Slices where an axis, a start or an end depends on data.
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
    // The distance of the ends bounds it, for any length.
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

// Repeats where an axis or a number of repeats depends on data: element i comes from i modulo the length.
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

}  // namespace

std::span<const OnnxOperator> slice_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Split", 1, lower_split, "* i", kTakesBounded | kLinear},
      {"Slice", 1, lower_slice, "* i i i i", kTakesBounded | kLinear},
      {"Tile", 1, lower_tile, "* i", kTakesBounded | kLinear | kTwoInputs},
  };
  return kRules;
}

}  // namespace sinter::convert
