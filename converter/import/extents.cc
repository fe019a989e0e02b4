#include "converter/import/extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace sinter::convert {
namespace {

// Axis of the result that an input's axis becomes, if the operation keeps the elements along it apart.
std::optional<int> follow(const Graph& graph, const OpAttrs& attrs, const std::vector<ValueId>& inputs,
                          size_t input, int axis, const Dims& result) {
  const Dims& own = graph.value(inputs[input]).dims;
  const auto rank = static_cast<int>(own.size());
  if ((op_info(op_of(attrs))->traits & kElementwise) != 0)
    return axis + static_cast<int>(result.size()) - rank;
  if (const auto* a = std::get_if<TransposeAttrs>(&attrs)) {
    for (int i = 0; i < a->perm.size(); ++i)
      if (a->perm[i] == axis) return i;
    return std::nullopt;
  }
  if (std::get_if<ViewAttrs>(&attrs) != nullptr) {
    // Only axes of 1 may come and go.
    size_t at = 0;
    std::optional<int> found;
    for (int i = 0; i < rank; ++i) {
      if (own[static_cast<size_t>(i)] == 1 && i != axis) continue;
      while (at < result.size() && result[at] == 1 && own[static_cast<size_t>(i)] != 1) ++at;
      if (at >= result.size() || result[at] != own[static_cast<size_t>(i)]) return std::nullopt;
      if (i == axis) found = static_cast<int>(at);
      ++at;
    }
    return std::all_of(result.begin() + static_cast<std::ptrdiff_t>(at), result.end(),
                       [](int64_t d) { return d == 1; })
               ? found
               : std::nullopt;
  }
  if (const auto* a = std::get_if<SliceAttrs>(&attrs)) {
    const bool whole =
        a->starts[axis] == 0 && a->steps[axis] == 1 && a->sizes[axis] == own[static_cast<size_t>(axis)];
    return whole ? std::optional(axis) : std::nullopt;
  }
  if (const auto* a = std::get_if<GatherAttrs>(&attrs)) {
    const auto at = static_cast<int>(a->axis);
    if (input == 1) return at + axis;
    if (axis == at) return std::nullopt;
    const auto indices = static_cast<int>(graph.value(inputs[1]).dims.size());
    return axis < at ? axis : axis + indices - 1;
  }
  if (const auto* a = std::get_if<GatherNdAttrs>(&attrs))
    return input == 1 && axis + 1 < rank && axis >= a->batch_dims ? std::optional(axis) : std::nullopt;
  if (const auto* a = std::get_if<ConcatAttrs>(&attrs))
    return axis == a->axis ? std::nullopt : std::optional(axis);
  if (const auto* a = std::get_if<SoftmaxAttrs>(&attrs))
    return axis == a->axis ? std::nullopt : std::optional(axis);
  if (const auto* a = std::get_if<LayerNormAttrs>(&attrs))
    return axis < a->axis ? std::optional(axis) : std::nullopt;
  if (std::get_if<FullyConnectedAttrs>(&attrs) != nullptr ||
      std::get_if<LowBitFullyConnectedAttrs>(&attrs) != nullptr)
    return input == 0 && axis + 1 < rank ? std::optional(axis) : std::nullopt;
  if (const auto* a = std::get_if<ReduceAttrs>(&attrs)) {
    int before = 0;
    for (const int64_t r : a->axes) {
      if (r == axis) return std::nullopt;
      before += r < axis;
    }
    return a->keepdims != 0 ? axis : axis - before;
  }
  if (const auto* a = std::get_if<ArgReduceAttrs>(&attrs)) {
    if (a->axis == axis) return std::nullopt;
    return a->keepdims != 0 || axis < a->axis ? axis : axis - 1;
  }
  return std::nullopt;
}

}  // namespace

bool carry_extents(Graph& graph, const OpAttrs& attrs, const std::vector<ValueId>& inputs,
                   const std::vector<ValueId>& results, std::string* why) {
  std::vector<std::pair<int, ValueId>> extents;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] < 0) continue;
    for (const auto& [axis, count] : graph.value(inputs[i]).extents) {
      const Value& v = graph.value(inputs[i]);
      const auto to = results.empty() || results[0] < 0
                          ? std::nullopt
                          : follow(graph, attrs, inputs, i, axis, graph.value(results[0]).dims);
      if (!to) {
        *why = fmt::format("the length of {} along axis {} depends on data, which {} cannot follow",
                           to_string(v.dtype, v.dims), axis, op_name(op_of(attrs)));
        return false;
      }
      const auto known =
          std::find_if(extents.begin(), extents.end(), [&](const auto& e) { return e.first == *to; });
      if (known == extents.end()) {
        extents.emplace_back(*to, count);
      } else if (known->second != count) {
        *why = fmt::format("two lengths that depend on data meet along axis {}", *to);
        return false;
      }
    }
  }
  if (extents.empty()) return true;
  // Every operand that has the axis at full length must have the same count.
  for (const auto& [axis, count] : extents) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] < 0 || (op_info(op_of(attrs))->traits & kElementwise) == 0) continue;
      const Value& v = graph.value(inputs[i]);
      const int own = axis - static_cast<int>(graph.value(results[0]).dims.size() - v.dims.size());
      if (own < 0 || v.dims[static_cast<size_t>(own)] == 1) continue;
      if (std::none_of(v.extents.begin(), v.extents.end(), [&](const auto& e) { return e.first == own; })) {
        *why = fmt::format("a length that depends on data meets the fixed {}", to_string(v.dims));
        return false;
      }
    }
  }
  for (const ValueId r : results)
    if (r >= 0) graph.value(r).extents = extents;
  return true;
}

}  // namespace sinter::convert
