#include "converter/ir/spread_axis.h"

#include "converter/ir/builder.h"
#include "converter/ir/recipe.h"

namespace sinter::convert {
namespace {

std::optional<SpreadAxis> then(const OpAttrs& attrs, std::optional<SpreadAxis> spread) {
  if (!spread) return std::nullopt;
  std::vector<ConstantPtr> results;
  if (!evaluate(attrs, {spread->table}, 1, &results, false).ok()) return std::nullopt;
  spread->table = results[0];
  return spread;
}

}  // namespace

std::optional<SpreadAxis> spread_along(const ConstantPtr& constant, size_t axis) {
  const Recipe* by = constant->computed_by() ? constant->computed_by().get() : constant->recipe().get();
  if (by == nullptr || constant->dims().size() != 2 || !by->inputs[0] || by->inputs[0]->dims().size() != 2)
    return std::nullopt;
  const ConstantPtr& x = by->inputs[0];
  if (std::holds_alternative<CastAttrs>(by->attrs)) return then(by->attrs, spread_along(x, axis));
  if (std::holds_alternative<ViewAttrs>(by->attrs) && x->dims() == constant->dims() &&
      x->dtype() == constant->dtype())
    return spread_along(x, axis);
  if (const auto* transpose = std::get_if<TransposeAttrs>(&by->attrs))
    return then(by->attrs, spread_along(x, static_cast<size_t>(transpose->perm[axis])));
  const auto* gather = std::get_if<GatherAttrs>(&by->attrs);
  const auto* nd = std::get_if<GatherNdAttrs>(&by->attrs);
  const bool by_one =
      gather != nullptr && static_cast<size_t>(gather->axis) == axis && by->inputs[1]->dims().size() == 1;
  const bool by_rows = nd != nullptr && axis == 0 && nd->batch_dims == 0 &&
                       by->inputs[1]->dims().size() == 2 && by->inputs[1]->dims()[1] == 1;
  if (!by_one && !by_rows) return std::nullopt;
  SpreadAxis spread{x, by->inputs[1]->as_int64s()};
  for (int64_t& i : spread.index)
    if (i < 0) i += x->dims()[axis];
  return spread;
}

std::optional<RowBlocks> blocks_along_rows(const ConstantPtr& constant, const Dims& dims) {
  const Recipe* by = constant->computed_by().get();
  if (by == nullptr || constant->dims() != dims || dims.size() != 2) return std::nullopt;
  const auto* view = std::get_if<ViewAttrs>(&by->attrs);
  if (view == nullptr || view->dtype >= 0) return std::nullopt;
  const Recipe* inner = by->inputs[0]->computed_by().get();
  if (inner == nullptr || !std::holds_alternative<BroadcastAttrs>(inner->attrs)) return std::nullopt;
  const ConstantPtr& table = inner->inputs[0];
  const Dims& wide = by->inputs[0]->dims();
  Dims each = wide;
  if (each.empty()) return std::nullopt;
  each.back() = 1;
  const int64_t block = wide.back();
  if (table->dims() != each || block < 2 || dims[1] % block != 0) return std::nullopt;
  return RowBlocks{table->reshaped({dims[0], dims[1] / block}), block};
}

}  // namespace sinter::convert
