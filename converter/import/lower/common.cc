#include "converter/import/lower/common.h"

#include <algorithm>
#include <cmath>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower.h"

namespace sinter::convert {
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
  if (length > kLongestAxis)
    return n.refuse_shapes("an axis of {} elements is too long; at most {} can be planned", length,
                           kLongestAxis);
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
