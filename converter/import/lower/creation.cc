// Tensors whose elements follow from their places: one number everywhere, ranges, triangles, one-hot rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/ir/recipe.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

bool lower_constant_of_shape(NodeLowering& n) {
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
  Dims dims;
  for (LengthId& length : *shape) {
    if (lengths.high(length) < 0) return n.refuse_shapes("a dimension of {}", lengths.high(length));
    const auto most = b.with_maximum(length);
    if (!most) return false;
    length = *most;
    dims.push_back(lengths.high(length));
  }
  return n.output(0, b.with_lengths(n.broadcast(n.add_constant(value), dims), *shape));
}

// Gives the numbers from start by delta, as many as data decides.
bool range_bounded(NodeLowering& n, LengthId start, LengthId limit, int64_t delta, DType t) {
  Bounded b(n);
  Lengths& lengths = b.lengths();
  const LengthId span = delta > 0 ? lengths.sub(limit, start) : lengths.sub(start, limit);
  const int64_t step = delta > 0 ? delta : -delta;
  const LengthId rounded = lengths.add(lengths.max(span, lengths.constant(0)), lengths.constant(step - 1));
  const auto count = b.with_maximum(lengths.div(rounded, lengths.constant(step)));
  if (!count) return false;
  const ValueId apart = n.int64(delta);
  ValueId at = n.mul(index_row(n, lengths.high(*count)), apart);
  at = n.cast(n.add(at, lengths.value(start)), t);
  return n.output(0, b.with_lengths(at, {*count}));
}

// A range is computed in its type's own arithmetic, that of 16-bit floats in float32 (stash_type).
bool lower_range(NodeLowering& n) {
  constexpr double kMost = 1 << 28;
  n.ignore_attr("stash_type");
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
  const ValueId row = n.reshape(index_row(n, rows), {rows, 1});
  return n.sub(n.reshape(index_row(n, columns), {1, columns}), row);
}

bool lower_eye_like(NodeLowering& n) {
  const ValueId x = n.input(0);
  if (n.rank(x) != 2) return n.refuse_shapes("its input must be a matrix, not of rank {}", n.rank(x));
  const DType t = n.has_attr("dtype") ? dtype_from_onnx(n.attr_int("dtype", 1)) : n.dtype(x);
  if (t == DType::kNone) return n.refuse("dtype {} is not supported", onnx_type_name(n.attr_int("dtype", 1)));
  const ValueId k = n.int64(n.attr_int("k", 0));
  const ValueId eye = n.compare(CompareFn::kEqual, {diagonals(n, n.dims(x)[0], n.dims(x)[1]), k});
  return n.output(0, n.cast(eye, t));
}

bool lower_trilu(NodeLowering& n) {
  const ValueId x = n.input(0);
  const int64_t rank = n.rank(x);
  if (rank < 2) return n.refuse_shapes("its input must have rank 2 or more, not {}", rank);
  const bool upper = n.attr_int("upper", 1) != 0;
  const ValueId k = n.has_input(1) ? n.reshape(n.cast(n.input(1), DType::kInt64), {}) : n.int64(0);
  const CompareFn fn = upper ? CompareFn::kGreaterOrEqual : CompareFn::kLessOrEqual;
  const Dims d = n.dims(x);
  const ValueId keep = n.compare(fn, {diagonals(n, d[d.size() - 2], d[d.size() - 1]), k});
  // Each element is kept or not by its own place, so that padding stays padding.
  const ValueId y = n.emit_padded(WhereAttrs{}, {keep, x, n.scalar(n.dtype(x), 0)}, {true})[0];
  Bounded b(n);
  return n.output(0, b.with_lengths(y, b.of_axes(x)));
}

bool lower_one_hot(NodeLowering& n) {
  const auto depth = n.constant_int(1);
  if (!depth) return false;
  if (*depth < 1) return n.refuse("depth is {}", *depth);
  const ValueId values = n.input(2);
  if (n.size(values) != 2) return n.refuse("values has {} elements, not 2", n.size(values));
  const int64_t rank = n.rank(n.input(0));
  int64_t axis = n.attr_int("axis", -1);
  if (!n.normalize_axis(&axis, rank + 1)) return false;
  ValueId index = n.cast(n.input(0), DType::kInt64);
  const ValueId negative = n.compare(CompareFn::kLess, {index, n.scalar(DType::kInt64, 0)});
  index = n.where({negative, n.add(index, n.int64(*depth)), index});
  const ValueId hot = n.compare(
      CompareFn::kEqual, {n.unsqueeze(index, axis), along_axis(n, index_row(n, *depth), axis, rank + 1)});
  const ValueId flat = n.reshape(values, {2});
  const ValueId off = n.reshape(n.slice(flat, 0, 0, 1), {}), on = n.reshape(n.slice(flat, 0, 1, 1), {});
  return n.output(0, n.where({hot, on, off}));
}

}  // namespace

std::span<const OnnxOperator> creation_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"ConstantOfShape", 9, lower_constant_of_shape, "i", kTakesBounded},
      {"Range", 11, lower_range, "N N N", kTakesBounded | kThreeInputs},
      {"EyeLike", 9, lower_eye_like, "", kNoTraits},
      {"Trilu", 14, lower_trilu, "* i", kTakesBounded},
      {"Trilu", 1, lower_trilu, "", kTakesBounded, kMicrosoft},
      {"OneHot", 9, lower_one_hot, "* * *", kTakesBounded | kOwnType | kThreeInputs},
  };
  return kRules;
}

}  // namespace sinter::convert
