#include "converter/import/lower/common.h"

#include <algorithm>
#include <cmath>

#include "converter/import/bounded.h"
#include "converter/import/lower.h"
#include "converter/types/promote.h"

namespace sinter::convert {
namespace {

// v as a literal of type `to`, or kAbsent where its value would change.
ValueId as_literal(NodeLowering& n, ValueId v, DType to, bool exact) {
  const ConstantPtr c = n.constant(v);
  if (!c || c->size() != 1 || byte_width(c->dtype()) == 0 || byte_width(to) == 0) return kAbsent;
  ConstantPtr literal;
  if (is_integer(c->dtype()) && is_integer(to)) {
    const int64_t value = c->as_int64s()[0];
    if (c->dtype() == DType::kUint64 || to == DType::kUint64) return kAbsent;
    literal = Constant::scalar_int(to, value);
    if (literal->as_int64s()[0] != value) return kAbsent;
  } else {
    const double value = c->as_doubles()[0];
    if (!is_float(to) && (!std::isfinite(value) || std::abs(value) > 9e15)) return kAbsent;
    literal = Constant::scalar(to, value);
    const double back = literal->as_doubles()[0];
    const bool rounds = is_float(to) && is_float(c->dtype()) && !exact;
    if (back != value && !(std::isnan(back) && std::isnan(value)) && !(rounds && std::isfinite(back)))
      return kAbsent;
  }
  return n.reshape(n.add_constant(literal), n.dims(v));
}

}  // namespace

bool align_types(NodeLowering& n, ValueId* a, ValueId* b, bool exact) {
  if (*a < 0 || *b < 0) return n.refuse("an operand is missing");
  if (n.dtype(*a) == n.dtype(*b)) return true;
  const bool a_known = n.constant(*a) != nullptr, b_known = n.constant(*b) != nullptr;
  if (a_known != b_known) {
    ValueId& known = a_known ? *a : *b;
    const ValueId literal = as_literal(n, known, n.dtype(a_known ? *b : *a), exact);
    if (literal >= 0) {
      known = literal;
      return true;
    }
  }
  return n.promote(a, b);
}

void ignore_legacy(NodeLowering& n) {
  if (n.opset() < 7) n.ignore_attr("consumed_inputs");
}

bool binary_operands(NodeLowering& n, ValueId* a, ValueId* b) {
  *a = n.input(0), *b = n.input(1);
  if (*a == kAbsent || *b == kAbsent) return n.refuse("needs two inputs");
  if (n.opset() >= 7 || !n.node().domain.empty()) return true;
  ignore_legacy(n);
  const bool broadcast = n.attr_int("broadcast", 0) != 0;
  const int64_t rank = n.rank(*a), own = n.rank(*b);
  int64_t axis = n.attr_int("axis", rank - own);
  if (!broadcast || own == 0 || own > rank) return true;
  if (!n.normalize_axis(&axis, rank)) return false;
  Dims dims = n.dims(*b);
  // Older exporters gave trailing ones as well: fit what fits.
  while (axis + static_cast<int64_t>(dims.size()) > rank && !dims.empty() && dims.back() == 1)
    dims.pop_back();
  if (axis + static_cast<int64_t>(dims.size()) > rank)
    return n.refuse_shapes("{} does not fit {} from axis {}", to_string(n.dims(*b)), to_string(n.dims(*a)),
                           axis);
  while (axis + static_cast<int64_t>(dims.size()) < rank) dims.push_back(1);
  *b = n.reshape(*b, dims);
  return *b != kUnknown;
}

ValueId as_float(NodeLowering& n, ValueId v) {
  if (v < 0 || is_float(n.dtype(v))) return v;
  return n.cast(v, DType::kFloat32);
}

ValueId as_bool(NodeLowering& n, ValueId v) { return n.cast(v, DType::kBool); }

bool read_axes(NodeLowering& n, size_t index, int64_t rank, std::vector<int64_t>* axes) {
  axes->clear();
  if (n.has_attr("axes")) {
    *axes = n.attr_ints("axes");
  } else if (n.has_input(index)) {
    const auto items = n.constant_ints(index);
    if (!items) return false;
    *axes = *items;
  }
  // A scalar has no axis, but exporters reduce and squeeze it along axis 0 or -1.
  if (rank == 0)
    for (const int64_t a : *axes)
      if (a == 0 || a == -1) return axes->clear(), true;
  return n.normalize_axes(axes, rank);
}

ValueId flatten_to_2d(NodeLowering& n, ValueId x, int64_t axis) {
  if (x < 0) return x;
  int64_t outer = 1, inner = 1;
  const Dims& d = n.dims(x);
  for (size_t i = 0; i < d.size(); ++i) (static_cast<int64_t>(i) < axis ? outer : inner) *= d[i];
  return n.reshape(x, {outer, inner});
}

ValueId along_axis(NodeLowering& n, ValueId v, int64_t axis, int64_t rank) {
  if (v < 0) return v;
  Dims d(static_cast<size_t>(std::max<int64_t>(rank - axis, 1)), 1);
  d[0] = n.size(v);
  return n.reshape(v, d);
}

ValueId index_row(NodeLowering& n, int64_t length) {
  if (length > kLongestAxis) return n.refuse("an axis of {} elements is too long", length), kUnknown;
  std::vector<int64_t> row(static_cast<size_t>(std::max<int64_t>(length, 0)));
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<int64_t>(i);
  return n.int64s(row);
}

ValueId bounded(NodeLowering& n, ValueId v, int64_t axis, ValueId count) {
  if (v < 0 || count < 0) return v;
  if (const ConstantPtr c = n.constant(count); c && n.constant(v))
    return n.slice(v, axis, 0, c->as_int64s()[0]);
  Bounded b(n);
  const int64_t dim = n.dims(v)[static_cast<size_t>(axis)];
  std::vector<LengthId> all = b.of_axes(v);
  LengthId& length = all[static_cast<size_t>(axis)];
  length = b.lengths().symbol(count, {0, dim});
  if (n.parent().options().bounds.count(n.node().name) != 0) {
    const auto least = b.with_maximum(length);
    if (!least) return kUnknown;
    length = *least;
  }
  return b.with_lengths(v, all);
}

}  // namespace sinter::convert
