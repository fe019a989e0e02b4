#include "converter/ir/strided_writes.h"

#include <algorithm>

#include "converter/ir/builder.h"
#include "converter/ir/known_results.h"
#include "converter/ir/recipe.h"

namespace sinter::convert {
namespace {

ConstantPtr evaluated(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs) {
  std::vector<ConstantPtr> results;
  return evaluate(attrs, inputs, 1, &results).ok() ? results[0] : nullptr;
}

// Under these dims, without a copy of large bytes.
ConstantPtr viewed(const ConstantPtr& c, const Dims& dims) {
  if (!c->recipe()) return c->reshaped(dims);
  return evaluated(ViewAttrs{IntList(std::span<const int64_t>(dims))}, {c});
}

// The columns of a constant [rows, n, ...] that it is joined from; empty: it is not, or not from single ones.
std::vector<ConstantPtr> joined_columns(const ConstantPtr& data, int64_t n) {
  const Recipe* view = data->recipe().get();
  const auto* dims_only = view != nullptr ? std::get_if<ViewAttrs>(&view->attrs) : nullptr;
  if (dims_only == nullptr || dims_only->dtype >= 0) return {};
  const ConstantPtr& joined = view->inputs[0];
  const Recipe* join = joined->recipe().get();
  const auto* concat = join != nullptr ? std::get_if<ConcatAttrs>(&join->attrs) : nullptr;
  const Dims& dims = joined->dims();
  if (concat == nullptr || concat->axis != 1 || dims[1] != n || dims[0] * n != data->dims()[0] ||
      std::any_of(join->inputs.begin(), join->inputs.end(),
                  [](const ConstantPtr& c) { return c->dims()[1] != 1; }))
    return {};
  return join->inputs;
}

ConstantPtr column(const ConstantPtr& data, int64_t n, int64_t i) {
  Dims dims = data->dims();
  dims[0] /= n;
  dims.insert(dims.begin() + 1, n);
  const ConstantPtr columns = viewed(data, dims);
  SliceAttrs slice;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    slice.starts.push(axis == 1 ? i : 0);
    slice.steps.push(1);
    slice.sizes.push(axis == 1 ? 1 : dims[axis]);
  }
  dims[1] = 1;
  if (!columns) return nullptr;
  return columns->recipe() ? evaluated(slice, {columns})
                           : computed_later(data->dtype(), dims, slice, {columns});
}

}  // namespace

ConstantPtr with_strided_rows(const ConstantPtr& data, const ConstantPtr& indices,
                              const ConstantPtr& updates) {
  const int64_t count = indices->size();
  if (data->dims().empty() || count < 2 || data->dims()[0] % count != 0 || is_sub_byte(data->dtype()) ||
      data->dtype() != updates->dtype())
    return nullptr;
  const int64_t n = data->dims()[0] / count;
  const Dims& own = indices->dims();
  if (n < 2 || n > kMostStrides || own[0] != count) return nullptr;
  const auto rows = progression_of(*indices);
  if (!rows || rows->step != n || rows->first < 0 || rows->first >= n) return nullptr;
  Dims dims = data->dims();
  dims[0] = count;
  if (updates->dims() != dims) return nullptr;
  dims.insert(dims.begin() + 1, 1);
  std::vector<ConstantPtr> columns = joined_columns(data, n);
  for (int64_t i = 0; columns.size() < static_cast<size_t>(n); ++i)
    columns.push_back(i == rows->first ? updates : column(data, n, i));
  columns[static_cast<size_t>(rows->first)] = viewed(updates, dims);
  for (const ConstantPtr& c : columns)
    if (!c) return nullptr;
  const ConstantPtr joined = evaluated(ConcatAttrs{1}, columns);
  return joined ? viewed(joined, data->dims()) : nullptr;
}

}  // namespace sinter::convert
