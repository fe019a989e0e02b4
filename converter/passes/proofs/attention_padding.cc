#include "converter/passes/proofs/attention_padding.h"

#include "runtime/core/op_enums.h"

namespace sinter::convert {

ValueId counted(Editor& e, ValueId mask, int64_t size) {
  for (int view; (view = e.made_by<ViewAttrs>(mask)) >= 0;) mask = e.node(view).inputs[0];
  const int less = e.made_by<CompareAttrs>(mask);
  if (less < 0 || e.node(less).as<CompareAttrs>()->fn != static_cast<int64_t>(CompareFn::kLess))
    return kAbsent;
  const ValueId counts = e.node(less).inputs[0], length = e.node(less).inputs[1];
  const ConstantPtr& count = e.value(counts).constant;
  if (!count || count->dtype() != DType::kInt64 || count->size() != size ||
      e.value(length).dtype != DType::kInt64 || element_count(e.value(length).dims) != 1)
    return kAbsent;
  const std::vector<int64_t> numbers = count->as_int64s();
  for (size_t j = 0; j < numbers.size(); ++j)
    if (numbers[j] != static_cast<int64_t>(j)) return kAbsent;
  return length;
}

bool is_checked_from(Editor& e, ValueId checked, ValueId length) {
  for (int n; checked != length; checked = e.node(n).inputs[0])
    if ((n = e.made_by<CheckLengthAttrs>(checked)) < 0) return false;
  return true;
}

std::optional<Padded> padded(Editor& e, ValueId id, size_t axis, Fill fill, bool single) {
  constexpr double kLowest = -1e30;  // as the pass finite-masks leaves it

  const int where = e.made_by<WhereAttrs>(id);
  if (where < 0 || (single && !e.single_read(id))) return std::nullopt;
  const auto& in = e.node(where).inputs;
  const auto neutral = e.uniform(in[2]);
  if (!neutral || !(fill == Fill::kZero ? *neutral == 0 : *neutral <= kLowest)) return std::nullopt;
  if (!same_dims(e.graph(), in[1], id)) return std::nullopt;
  const Dims& dims = e.value(id).dims;
  const Dims& mask = e.value(in[0]).dims;
  if (mask.size() != dims.size()) return std::nullopt;
  for (size_t i = 0; i < dims.size(); ++i)
    if (mask[i] != (i == axis ? dims[i] : 1)) return std::nullopt;
  const ValueId length = counted(e, in[0], dims[axis]);
  return length == kAbsent ? std::nullopt : std::optional(Padded{in[1], length});
}

}  // namespace sinter::convert
