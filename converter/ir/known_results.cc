#include "converter/ir/known_results.h"

#include "converter/ir/integer_range.h"
#include "converter/ir/recipe.h"

namespace sinter::convert {
namespace {

template <class T>
std::optional<Progression> read_progression(std::span<const std::byte> bytes) {
  const size_t count = bytes.size() / sizeof(T);
  const auto item = [&](size_t i) {
    T number;
    std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
    return static_cast<int64_t>(number);
  };
  if (count < 2) return std::nullopt;
  Progression p{item(0), 0};
  if (__builtin_sub_overflow(item(1), p.first, &p.step)) return std::nullopt;
  auto next = static_cast<uint64_t>(p.first);
  for (size_t i = 0; i < count; ++i, next += static_cast<uint64_t>(p.step))
    if (static_cast<uint64_t>(item(i)) != next) return std::nullopt;
  return p;
}

// Returns a slice of evenly spaced positions; null if the constant has none.
ConstantPtr sliced(const SliceAttrs& slice, const Constant& c, const Dims& dims) {
  const bool positions = c.dtype() == DType::kInt32 || c.dtype() == DType::kInt64;
  if (!positions || c.dims().size() != 1 || dims[0] == 0 || (c.is_lazy() && !c.progression())) return nullptr;
  const auto p = progression_of(c);
  if (!p) return nullptr;
  return Constant::evenly_spaced(c.dtype(), dims, every_from(*p, slice.steps[0], slice.starts[0]));
}

// Returns the operand of an earlier Transpose that this one cancels, else null.
ConstantPtr transposed_back(const TransposeAttrs& again, const Constant& c) {
  const Recipe* by = c.computed_by().get();
  const auto* first = by != nullptr ? std::get_if<TransposeAttrs>(&by->attrs) : nullptr;
  if (first == nullptr) return nullptr;
  for (int i = 0; i < again.perm.size(); ++i)
    if (first->perm[static_cast<int>(again.perm[i])] != i) return nullptr;
  return by->inputs[0];
}

}  // namespace

std::optional<Progression> progression_of(const Constant& c) {
  if (c.progression()) return c.progression();
  if (c.dtype() == DType::kInt64) return read_progression<int64_t>(c.load().bytes);
  if (c.dtype() == DType::kInt32) return read_progression<int32_t>(c.load().bytes);
  return std::nullopt;
}

Progression every_from(const Progression& p, int64_t n, int64_t first) {
  const auto step = static_cast<uint64_t>(p.step);
  return {static_cast<int64_t>(static_cast<uint64_t>(p.first) + static_cast<uint64_t>(first) * step),
          static_cast<int64_t>(static_cast<uint64_t>(n) * step)};
}

ConstantPtr known_result(const OpAttrs& attrs, const std::vector<ConstantPtr>& inputs, DType dtype,
                         const Dims& dims) {
  if (inputs.empty() || !inputs[0] || dense_bytes(dtype, dims) < kLazyResultBytes) return nullptr;
  if (const auto* slice = std::get_if<SliceAttrs>(&attrs)) return sliced(*slice, *inputs[0], dims);
  if (const auto* view = std::get_if<ViewAttrs>(&attrs))
    return view->dtype < 0 && inputs[0]->progression() ? inputs[0]->reshaped(dims) : nullptr;
  if (const auto* transpose = std::get_if<TransposeAttrs>(&attrs))
    return transposed_back(*transpose, *inputs[0]);
  if (std::holds_alternative<CompareAttrs>(attrs)) {
    const ConstantPtr c = computed_later(dtype, dims, attrs, inputs);
    const auto truth = integer_range(*c);
    if (!truth || truth->low != truth->high) return nullptr;
    return broadcast_later(Constant::scalar_int(DType::kBool, truth->low), dims);
  }
  if (std::holds_alternative<WhereAttrs>(attrs)) {
    const auto condition = integer_range(*inputs[0]);
    if (!condition || condition->low != condition->high) return nullptr;
    const ConstantPtr& chosen = inputs[condition->low != 0 ? 1 : 2];
    return chosen->dims() == dims ? chosen : nullptr;
  }
  return nullptr;
}

}  // namespace sinter::convert
