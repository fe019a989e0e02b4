#include "converter/ir/strided_writes.h"

#include <algorithm>

#include "converter/flow/slice_along.h"
#include "converter/ir/builder.h"
#include "converter/ir/known_results.h"
#include "converter/ir/recipe.h"

namespace sinter::convert {
namespace {

// Returns a constant under these dims, without a copy of large bytes.
ConstantPtr viewed(const ConstantPtr& c, const Dims& dims) {
  if (!c->recipe()) return c->reshaped(dims);
  return evaluated(ViewAttrs{IntList(dims)}, {c});
}

// Returns the parts of length 1 that a constant is joined from along the axis of [rows, n, ...] (1) or [n,
// rows, ...] (0); empty: it is not.
std::vector<ConstantPtr> joined_parts(const ConstantPtr& data, size_t axis, const Dims& dims) {
  const Recipe* view = data->recipe().get();
  const auto* dims_only = view != nullptr ? std::get_if<ViewAttrs>(&view->attrs) : nullptr;
  if (dims_only == nullptr || dims_only->dtype >= 0 || view->inputs[0]->dims() != dims) return {};
  const Recipe* join = view->inputs[0]->recipe().get();
  const auto* concat = join != nullptr ? std::get_if<ConcatAttrs>(&join->attrs) : nullptr;
  if (concat == nullptr || concat->axis != static_cast<int64_t>(axis) ||
      std::any_of(join->inputs.begin(), join->inputs.end(),
                  [&](const ConstantPtr& c) { return c->dims()[axis] != 1; }))
    return {};
  return join->inputs;
}

// Returns part i of a constant seen as `dims`.
ConstantPtr part(const ConstantPtr& data, Dims dims, size_t axis, int64_t i) {
  const ConstantPtr whole = viewed(data, dims);
  if (!whole) return nullptr;
  const SliceAttrs slice = slice_along(dims, axis, i, 1);
  dims[axis] = 1;
  return whole->recipe() ? evaluated(slice, {whole}) : computed_later(data->dtype(), dims, slice, {whole});
}

}  // namespace

ConstantPtr with_rows(const ConstantPtr& data, const ConstantPtr& indices, const ConstantPtr& updates) {
  const int64_t count = indices->size();
  if (data->dims().empty() || count < 2 || data->dims()[0] % count != 0 || is_sub_byte(data->dtype()) ||
      data->dtype() != updates->dtype())
    return nullptr;
  const int64_t n = data->dims()[0] / count;
  if (n < 2 || n > kMostParts || indices->dims()[0] != count) return nullptr;
  const auto rows = progression_of(*indices);
  if (!rows || rows->first < 0) return nullptr;
  const bool every_nth = rows->step == n && rows->first < n;
  const bool run = rows->step == 1 && rows->first % count == 0 && rows->first < n * count;
  Dims dims = data->dims();
  dims[0] = count;
  if ((!every_nth && !run) || updates->dims() != dims) return nullptr;
  const size_t axis = every_nth ? 1 : 0;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  const ConstantPtr written = viewed(updates, dims);
  dims[axis] = n;
  const auto at = static_cast<size_t>(every_nth ? rows->first : rows->first / count);
  std::vector<ConstantPtr> parts = joined_parts(data, axis, dims);
  for (size_t i = 0; parts.size() < static_cast<size_t>(n); ++i)
    parts.push_back(i == at ? written : part(data, dims, axis, static_cast<int64_t>(i)));
  parts[at] = written;
  for (const ConstantPtr& c : parts)
    if (!c) return nullptr;
  const ConstantPtr joined = evaluated(ConcatAttrs{static_cast<int64_t>(axis)}, parts);
  return joined ? viewed(joined, data->dims()) : nullptr;
}

}  // namespace sinter::convert
