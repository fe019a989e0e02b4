// Shape questions and operators that only give elements another shape; constants made of shapes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/ir/recipe.h"
#include "runtime/core/checked.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Lengths that are known.
Dims dims_of(const Lengths& lengths, const std::vector<LengthId>& all) {
  Dims dims;
  for (const LengthId id : all) dims.push_back(lengths.high(id));
  return dims;
}

bool lower_shape(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  const auto rank = n.rank(x);
  int64_t start = n.attr_int("start", 0), end = n.attr_int("end", rank);
  if (start < 0) start += rank;
  if (end < 0) end += rank;
  start = std::clamp<int64_t>(start, 0, rank), end = std::clamp<int64_t>(end, start, rank);
  const std::vector<LengthId> all = Bounded(n).of_axes(x);
  return n.output(0, n.parent().lengths().vector({all.begin() + start, all.begin() + end}));
}

bool lower_size(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  Lengths& lengths = n.parent().lengths();
  LengthId size = lengths.constant(1);
  for (const LengthId length : lengths.of_axes(x)) size = lengths.mul(size, length);
  return n.output(0, lengths.value(size));
}

bool lower_identity(NodeLowering& n) {
  if (!n.has_input(0)) return n.refuse("has no input");
  return n.output(0, n.input(0));
}

// Whether nothing is proven of an item: a run gives it, the model does not compute it from lengths.
bool is_given(const Lengths& lengths, LengthId item) {
  return lengths.range(item).low <= std::numeric_limits<int32_t>::min();
}

// Elements that are planned for a value without elements whose shape a run gives.
constexpr double kEmptyElements = 1 << 16;

// An item of a shape that a run gives: `open`, which is 1 where the item is -1, and the item with a 1 for
// that and the copied length for a 0.
struct GivenDim {
  LengthId dim, open;
};
GivenDim given_dim(Bounded& b, LengthId item, std::optional<LengthId> copied, int64_t most) {
  Lengths& lengths = b.lengths();
  const LengthId one = lengths.constant(1);
  // Checked, not only proven: an axis beside one of 0 elements has no other limit.
  const IntegerRange all = lengths.range(item);
  item = b.check(LengthRule::kWithin, item, lengths.add(item, one), lengths.constant(most + 1),
                 {std::max<int64_t>(-1, all.low), std::min(most, all.high)});
  const LengthId open = lengths.combine(LengthFn::kEqual, item, lengths.constant(-1));
  LengthId dim = lengths.add(item, lengths.add(open, open));
  if (copied)
    dim =
        lengths.add(dim, lengths.mul(lengths.combine(LengthFn::kEqual, item, lengths.constant(0)), *copied));
  return {lengths.max(dim, lengths.constant(0)), open};
}

// A shape that depends on data, or that a bounded value takes.
bool reshape_bounded(NodeLowering& n, ValueId x, std::vector<LengthId> shape, bool allow_zero) {
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const std::vector<LengthId> from = b.of_axes(x);
  LengthId whole = lengths.constant(1), others = lengths.constant(1);
  for (const LengthId length : from) whole = lengths.mul(whole, length);
  // No axis of the result is longer: of the elements that x has, or would have with a 1 for each 0.
  int64_t most = 1;
  for (const LengthId length : from)
    if (!checked_mul(most, std::max<int64_t>(lengths.high(length), 1), &most)) most = Lengths::kNoMaximum;
  // Axes beside one of 0 elements can have any length: those that together need little memory.
  if (lengths.known(whole) == 0)
    most = std::max(most,
                    static_cast<int64_t>(std::pow(kEmptyElements, 1.0 / static_cast<double>(shape.size()))));
  std::vector<std::pair<size_t, LengthId>> open;  // axes that may be -1, and whether they are
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto known = lengths.known(shape[i]);
    const auto copied = !allow_zero && i < from.size() ? std::optional(from[i]) : std::nullopt;
    if (known == 0 && !allow_zero) {
      if (!copied) return n.refuse_shapes("its shape copies dim {} of {}", i, to_string(n.dims(x)));
      shape[i] = *copied;
    }
    if (known == -1) {
      if (!open.empty() && lengths.known(open.front().second) == 1)
        return n.refuse_shapes("its shape leaves two dims open");
      shape[i] = lengths.constant(1);
      open.insert(open.begin(), {i, shape[i]});
      continue;
    }
    if (!known && is_given(lengths, shape[i])) {
      const GivenDim given = given_dim(b, shape[i], copied, most);
      shape[i] = given.dim;
      if (lengths.known(given.open) != 0) open.emplace_back(i, given.open);
    }
    if (!known) shape[i] = lengths.min(shape[i], lengths.constant(most));
    others = lengths.mul(others, shape[i]);
  }
  for (const auto& [axis, is_open] : open) {
    const LengthId length =
        lengths.min(lengths.div(whole, others), lengths.constant(std::max<int64_t>(lengths.high(whole), 0)));
    if (lengths.known(is_open) == 1) {
      shape[axis] = length;
      continue;
    }
    const LengthId more = lengths.mul(is_open, lengths.sub(length, lengths.constant(1)));
    const LengthId dim = lengths.max(lengths.add(shape[axis], more), lengths.constant(0));
    shape[axis] = lengths.min(dim, lengths.constant(most));
  }
  return n.output(0, b.reshaped(x, shape));
}

// Reshape-1 has the shape as attribute.
bool lower_reshape(NodeLowering& n) {
  ignore_legacy(n);
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  std::vector<int64_t> shape;
  if (n.has_attr("shape") && !n.has_input(1)) {
    shape = n.attr_ints("shape");
  } else {
    if (!n.has_input(1)) return n.refuse("has no shape");
    Lengths& lengths = n.parent().lengths();
    if (const auto items = lengths.items(n.input(1)); items && !lengths.known_items(n.input(1)))
      return reshape_bounded(n, x, *items, n.attr_int("allowzero", 0) != 0);
    const auto items = n.constant_ints(1);
    if (!items) return false;
    shape = *items;
  }
  const bool allow_zero = n.attr_int("allowzero", 0) != 0;
  if (Bounded(n).is_bounded(x)) {
    std::vector<LengthId> items;
    for (const int64_t dim : shape) items.push_back(n.parent().lengths().constant(dim));
    return reshape_bounded(n, x, items, allow_zero);
  }
  const Dims d = n.dims(x);
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (i >= d.size())
        return n.refuse_shapes("shape [{}] copies dim {} of {}", fmt::join(shape, ","), i, to_string(d));
      shape[i] = d[i];
    }
    if (shape[i] == -1) {
      if (open >= 0) return n.refuse_shapes("shape [{}] leaves two dims open", fmt::join(shape, ","));
      open = static_cast<int>(i);
    } else if (shape[i] < 0 || !checked_mul(known, shape[i], &known)) {
      return n.refuse_shapes("shape [{}] is impossible", fmt::join(shape, ","));
    }
  }
  const int64_t size = n.size(x);
  if (open >= 0) {
    if (known == 0 ? size != 0 : size % known != 0)
      return n.refuse_shapes("{} elements of {} do not fit shape [{}]", size, to_string(d),
                             fmt::join(shape, ","));
    shape[static_cast<size_t>(open)] = known == 0 ? 0 : size / known;
  } else if (known != size) {
    return n.refuse_shapes("{} elements of {} do not fit shape [{}]", size, to_string(d),
                           fmt::join(shape, ","));
  }
  return n.output(0, n.reshape(x, shape));
}

// Does the file declare a result of this rank? Only for what no standard operator gives.
bool declares_rank(NodeLowering& n, size_t rank) {
  const std::string& name = n.node().outputs[0];
  const ImportedGraph& source = n.parent().source();
  for (const auto* list : {&source.value_info, &source.outputs})
    for (const ImportedValueInfo& claim : *list)
      if (claim.name == name) return claim.has_shape && claim.dims.size() == rank;
  return false;
}

// An axis that is not 1 is an error in ONNX. In torch it stays, and torch's newer exporter writes such a
// node; it declares the result's shape, too.
bool lower_squeeze(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  const Dims d = n.dims(x);
  std::vector<int64_t> axes;
  if (!read_axes(n, 1, n.rank(x), &axes)) return false;
  const bool given = n.has_attr("axes") || n.has_input(1);
  Bounded b(n);
  const std::vector<LengthId> from = b.of_axes(x);
  std::vector<LengthId> out;
  std::vector<size_t> kept;  // named axes that are not 1
  for (size_t i = 0; i < d.size(); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    const bool open = !b.lengths().known(from[i]);
    if (!given && open)
      return n.refuse_advising("name the axes to remove",
                               "dimension {} of {} is bounded (at most {}) and may be 1", i, to_string(d),
                               d[i]);
    const bool keep = named && d[i] != 1 && !open;
    if (keep) kept.push_back(i);
    if (keep || (given ? !named : d[i] != 1)) out.push_back(from[i]);
  }
  if (!kept.empty() && !declares_rank(n, out.size()))
    return n.refuse_shapes("axis {} of {} is not 1", kept[0], to_string(d));
  if (!kept.empty())
    n.warn("axis {} of {} is not 1 and stays, as the declared shape of '{}' has it", fmt::join(kept, ", "),
           to_string(d), n.node().outputs[0]);
  return n.output(0, b.is_bounded(x) ? b.reshaped(x, out) : n.reshape(x, dims_of(b.lengths(), out)));
}

bool lower_unsqueeze(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  std::vector<int64_t> axes;
  if (n.has_attr("axes")) {
    axes = n.attr_ints("axes");
  } else {
    if (!n.has_input(1)) return n.refuse("has no axes");
    const auto items = n.constant_ints(1);
    if (!items) return false;
    axes = *items;
  }
  const Dims d = n.dims(x);
  const auto rank = static_cast<int64_t>(d.size() + axes.size());
  if (!n.normalize_axes(&axes, rank)) return false;
  Bounded b(n);
  const std::vector<LengthId> from = b.of_axes(x);
  std::vector<LengthId> out;
  size_t next = 0;
  for (int64_t i = 0; i < rank; ++i)
    out.push_back(std::find(axes.begin(), axes.end(), i) != axes.end() ? b.lengths().constant(1)
                                                                       : from[next++]);
  return n.output(0, b.is_bounded(x) ? b.reshaped(x, out) : n.reshape(x, dims_of(b.lengths(), out)));
}

// com.microsoft: a new axis of one at a place of the result.
bool lower_expand_dims(NodeLowering& n) {
  if (!n.has_input(1)) return n.refuse("needs two inputs");
  auto axis = n.constant_int(1);
  if (!axis || !n.normalize_axis(&*axis, n.rank(n.input(0)) + 1)) return false;
  return n.output(0, n.unsqueeze(n.input(0), *axis));
}

bool lower_flatten(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  int64_t axis = n.attr_int("axis", 1);
  const int64_t rank = n.rank(x);
  if (axis < -rank || axis > rank)
    return n.refuse_shapes("axis {} does not exist in a value of rank {}", axis, rank);
  if (axis < 0) axis += rank;
  return n.output(0, flatten_to_2d(n, x, axis));
}

bool lower_expand(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (x == kAbsent || !n.has_input(1)) return n.refuse("needs two inputs");
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const auto shape = lengths.items(n.input(1));
  if (!shape) return n.constant_ints(1).has_value();
  const std::vector<LengthId> from = b.of_axes(x);
  const Dims d = n.dims(x);
  std::vector<LengthId> out = *shape;
  if (out.size() < from.size()) out.insert(out.begin(), from.size() - out.size(), lengths.constant(1));
  Dims dims;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool own = i + from.size() >= out.size();
    const size_t axis = own ? i + from.size() - out.size() : 0;
    if (own && lengths.known(out[i]) == 1) {
      out[i] = from[axis];
    } else if (own && lengths.known(from[axis]) != 1) {
      const auto a = lengths.known(from[axis]), o = lengths.known(out[i]);
      if (a && o && *a != *o) return n.refuse_shapes("{} does not broadcast with its shape", to_string(d));
      if (is_given(lengths, out[i])) {  // may be 1, which repeats nothing
        const LengthId one = lengths.constant(1);
        const LengthId repeats_none = lengths.combine(LengthFn::kEqual, out[i], one);
        out[i] = lengths.add(out[i], lengths.mul(repeats_none, lengths.sub(from[axis], one)));
      }
      out[i] = b.equal(from[axis], out[i]);
    } else {
      const auto most = b.with_maximum(out[i]);
      if (!most) return false;
      out[i] = *most;
    }
    dims.push_back(own && d[axis] != 1 ? d[axis] : lengths.high(out[i]));
    if (dims.back() < 0) return n.refuse_shapes("a dimension of {}", dims.back());
  }
  if (!b.is_bounded(x) && lengths.known_items(n.input(1))) return n.output(0, n.broadcast(x, dims));
  const ValueId y = n.emit_padded(BroadcastAttrs{int_list(dims)}, {x}, {true})[0];
  return n.output(0, b.with_lengths(y, out));
}

bool lower_constant_of_shape(NodeLowering& n) {
  if (!n.has_input(0)) return n.refuse("has no input");
  Bounded b(n);
  Lengths& lengths = b.lengths();
  auto shape = lengths.items(n.input(0));
  if (!shape) return n.constant_ints(0).has_value();
  ConstantPtr value = Constant::scalar(DType::kFloat32, 0);
  if (n.has_attr("value")) {
    value = n.attr_tensor("value");
    if (!value) return false;
    if (value->size() != 1) return n.refuse("attribute value has {} elements, not 1", value->size());
    value = value->reshaped({});
  }
  for (LengthId& length : *shape) {
    if (lengths.high(length) < 0) return n.refuse_shapes("a dimension of {}", lengths.high(length));
    const auto most = b.with_maximum(length);
    if (!most) return false;
    length = *most;
  }
  return n.output(0, b.with_lengths(n.broadcast(n.add_constant(value), dims_of(lengths, *shape)), *shape));
}

// From start by delta, in a number that depends on data.
bool range_bounded(NodeLowering& n, LengthId start, LengthId limit, int64_t delta, DType t) {
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const LengthId span = delta > 0 ? lengths.sub(limit, start) : lengths.sub(start, limit);
  const int64_t step = delta > 0 ? delta : -delta;
  const LengthId rounded = lengths.add(lengths.max(span, lengths.constant(0)), lengths.constant(step - 1));
  const auto count = b.with_maximum(lengths.div(rounded, lengths.constant(step)));
  if (!count) return false;
  ValueId at =
      n.mul(index_row(n, lengths.high(*count)), n.add_constant(Constant::scalar_int(DType::kInt64, delta)));
  at = n.cast(n.add(at, lengths.value(start)), t);
  return n.output(0, b.with_lengths(at, {*count}));
}

// In the type's own arithmetic; 16-bit floats in float32 (stash_type).
bool lower_range(NodeLowering& n) {
  constexpr double kMost = 1 << 28;
  n.ignore_attr("stash_type");
  for (size_t i = 0; i < 3; ++i)
    if (!n.has_input(i)) return n.refuse("needs three inputs");
  const DType t = n.dtype(n.input(0));
  if (is_integer(t)) {
    Lengths& lengths = n.parent().lengths();
    const auto first = lengths.items(n.input(0)), last = lengths.items(n.input(1));
    const auto step = lengths.known_items(n.input(2));
    const bool open = !lengths.known_items(n.input(0)) || !lengths.known_items(n.input(1));
    if (first && last && step && first->size() == 1 && last->size() == 1 && step->size() == 1 && open &&
        step->front() != 0 && step->front() != std::numeric_limits<int64_t>::min())
      return range_bounded(n, first->front(), last->front(), step->front(), t);
    const auto start = n.constant_int(0), limit = n.constant_int(1), delta = n.constant_int(2);
    if (!start || !limit || !delta) return false;
    if (*delta == 0) return n.refuse("delta is 0");
    const double count =
        std::ceil((static_cast<double>(*limit) - static_cast<double>(*start)) / static_cast<double>(*delta));
    if (count > kMost) return n.refuse("{} elements are too many", count);
    const auto length = static_cast<size_t>(std::max(count, 0.0));
    if (length * sizeof(int64_t) >= kLazyResultBytes && t == DType::kInt64)
      return n.output(
          0, n.add_constant(Constant::evenly_spaced(t, {static_cast<int64_t>(count)}, {*start, *delta})));
    std::vector<int64_t> items(length);
    for (size_t i = 0; i < items.size(); ++i)
      items[i] = static_cast<int64_t>(static_cast<uint64_t>(*start) + i * static_cast<uint64_t>(*delta));
    return n.output(0, n.cast(n.int64s(items), t));
  }
  const auto start = n.constant_double(0), limit = n.constant_double(1), delta = n.constant_double(2);
  if (!start || !limit || !delta) return false;
  if (*delta == 0 || !std::isfinite(*start) || !std::isfinite(*limit) || !std::isfinite(*delta))
    return n.refuse("from {} to {} by {} is not a range", *start, *limit, *delta);
  const bool wide = t == DType::kFloat64;
  const double span =
      wide ? *limit - *start : static_cast<double>(static_cast<float>(*limit) - static_cast<float>(*start));
  const double count = std::ceil(span / *delta);
  if (count > kMost) return n.refuse("{} elements are too many", count);
  std::vector<double> items(static_cast<size_t>(std::max(count, 0.0)));
  for (size_t i = 0; i < items.size(); ++i)
    items[i] = wide ? *start + static_cast<double>(i) * *delta
                    : static_cast<double>(static_cast<float>(*start) +
                                          static_cast<float>(i) * static_cast<float>(*delta));
  const ConstantPtr c = Constant::of<double>(DType::kFloat64, {static_cast<int64_t>(items.size())},
                                             std::span<const double>(items));
  const ValueId result = n.cast(n.add_constant(c), t);
  if (result < 0 || is_wide_float(t)) return n.output(0, result);
  // Positions beyond 2048, or 256, are not lost to what is computed of them (rule accumulate.wide).
  const ConstantPtr whole = n.constant(n.cast(n.add_constant(c), DType::kFloat32));
  return n.output(0, n.add_constant(Constant::rounded(n.constant(result), whole)));
}

// [rows, columns] of column - row.
ValueId diagonals(NodeLowering& n, int64_t rows, int64_t columns) {
  return n.sub(n.reshape(index_row(n, columns), {1, columns}), n.reshape(index_row(n, rows), {rows, 1}));
}

bool lower_eye_like(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (n.rank(x) != 2) return n.refuse_shapes("its input must be a matrix, not of rank {}", n.rank(x));
  const DType t = n.has_attr("dtype") ? dtype_from_onnx(n.attr_int("dtype", 1)) : n.dtype(x);
  if (t == DType::kNone) return n.refuse("dtype {} is not supported", onnx_type_name(n.attr_int("dtype", 1)));
  const ValueId k = n.add_constant(Constant::scalar_int(DType::kInt64, n.attr_int("k", 0)));
  const ValueId eye = n.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kEqual)},
                             {diagonals(n, n.dims(x)[0], n.dims(x)[1]), k});
  return n.output(0, n.cast(eye, t));
}

bool lower_trilu(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int64_t rank = n.rank(x);
  if (rank < 2) return n.refuse_shapes("its input must have rank 2 or more, not {}", rank);
  const bool upper = n.attr_int("upper", 1) != 0;
  const ValueId k = n.has_input(1) ? n.reshape(n.cast(n.input(1), DType::kInt64), {})
                                   : n.add_constant(Constant::scalar_int(DType::kInt64, 0));
  const CompareFn fn = upper ? CompareFn::kGreaterOrEqual : CompareFn::kLessOrEqual;
  const Dims d = n.dims(x);
  const ValueId keep =
      n.emit(CompareAttrs{static_cast<int64_t>(fn)}, {diagonals(n, d[d.size() - 2], d[d.size() - 1]), k});
  // Each element is kept or not by its own place, so that padding stays padding.
  const ValueId y = n.emit_padded(WhereAttrs{}, {keep, x, n.scalar(n.dtype(x), 0)}, {true})[0];
  Bounded b(n);
  return n.output(0, b.with_lengths(y, b.of_axes(x)));
}

bool lower_one_hot(NodeLowering& n) {
  if (!n.has_input(2)) return n.refuse("needs three inputs");
  const auto depth = n.constant_int(1);
  if (!depth) return false;
  if (*depth < 1) return n.refuse("depth is {}", *depth);
  const ValueId values = n.input(2);
  if (n.size(values) != 2) return n.refuse("values has {} elements, not 2", n.size(values));
  const int64_t rank = n.rank(n.input(0));
  int64_t axis = n.attr_int("axis", -1);
  if (!n.normalize_axis(&axis, rank + 1)) return false;
  ValueId index = n.cast(n.input(0), DType::kInt64);
  const ValueId negative =
      n.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kLess)}, {index, n.scalar(DType::kInt64, 0)});
  index =
      n.emit(WhereAttrs{},
             {negative, n.add(index, n.add_constant(Constant::scalar_int(DType::kInt64, *depth))), index});
  const ValueId hot = n.emit(CompareAttrs{static_cast<int64_t>(CompareFn::kEqual)},
                             {n.unsqueeze(index, axis), along_axis(n, index_row(n, *depth), axis, rank + 1)});
  const ValueId flat = n.reshape(values, {2});
  const ValueId off = n.reshape(n.slice(flat, 0, 0, 1), {}), on = n.reshape(n.slice(flat, 0, 1, 1), {});
  return n.output(0, n.emit(WhereAttrs{}, {hot, on, off}));
}

// At inference nothing is dropped; since opset 12 the mask is all ones then.
bool lower_dropout(NodeLowering& n) {
  ignore_legacy(n);
  for (const char* a : {"ratio", "is_test", "seed"}) n.ignore_attr(a);
  const ValueId x = n.input(0);
  if (x == kAbsent) return n.refuse("has no input");
  const bool has_ratio = n.has_input(1);
  if (n.has_input(2)) {
    const auto training = n.constant_int(2);
    if (!training) return false;
    const auto ratio = has_ratio ? n.constant_double(1) : std::optional<double>(0.5);
    if (!ratio) return false;
    if (*training != 0 && *ratio != 0)
      return n.refuse("training mode drops elements at random; export the model for inference");
  }
  if (n.wants_output(1)) {
    const DType t = n.opset() < 10 ? n.dtype(x) : DType::kBool;
    // Before opset 12 an inference mask has no meaning; onnxruntime gives zeros.
    Bounded b(n);
    n.output(1, b.with_lengths(n.broadcast(n.scalar(t, n.opset() < 12 ? 0 : 1), n.dims(x)), b.of_axes(x)));
  }
  return n.output(0, x);
}

}  // namespace

std::span<const OnnxOperator> shape_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Shape", 1, lower_shape, "", kTakesBounded},
      {"Size", 1, lower_size, "", kTakesBounded},
      {"Identity", 1, lower_identity, "", kTakesBounded | kLinear | kTakesSequence},
      {"Reshape", 1, lower_reshape, "* i", kTakesBounded | kLinear},
      {"Squeeze", 1, lower_squeeze, "* i", kTakesBounded | kLinear},
      {"Unsqueeze", 1, lower_unsqueeze, "* i", kTakesBounded | kLinear},
      {"ExpandDims", 1, lower_expand_dims, "* i", kTakesBounded, kMicrosoft},
      {"Flatten", 1, lower_flatten, "", kTakesBounded | kLinear},
      {"Expand", 8, lower_expand, "* i", kTakesBounded | kLinear},
      {"ConstantOfShape", 9, lower_constant_of_shape, "i", kTakesBounded},
      {"Range", 11, lower_range, "N N N", kTakesBounded},
      {"EyeLike", 9, lower_eye_like, "", kNoTraits},
      {"Trilu", 14, lower_trilu, "* i", kTakesBounded},
      {"Trilu", 1, lower_trilu, "", kTakesBounded, kMicrosoft},
      {"OneHot", 9, lower_one_hot, "* * *", kTakesBounded | kOwnType},
      {"Dropout", 1, lower_dropout, "", kTakesBounded},
  };
  return kRules;
}

}  // namespace sinter::convert
