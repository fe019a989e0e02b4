#include "converter/import/lengths/given_lengths.h"

#include <fmt/format.h>

namespace sinter::convert {

bool GivenLengths::bounds(const ImportedValueInfo& input) const {
  for (size_t axis = 0; axis < input.dims.size(); ++axis)
    if (range_of(input, axis) != nullptr) return true;
  return false;
}

void GivenLengths::bound(const ImportedValueInfo& input, ValueId value) {
  for (size_t axis = 0; axis < input.dims.size(); ++axis)
    if (const DimRange* range = range_of(input, axis)) {
      const ValueId length = length_of(input.dims[axis].symbol, *range);
      lowering_.graph().value(value).bounded_dims.push_back({static_cast<int>(axis), length});
    }
}

void GivenLengths::list() {
  Graph& graph = lowering_.graph();
  for (const auto& [name, id] : lengths_) {
    const DimRange& range = options_.ranges.at(name);
    graph.lengths.push_back({graph.inputs.size(), name, range.minimum, range.maximum});
    graph.inputs.push_back(id);
  }
}

const DimRange* GivenLengths::range_of(const ImportedValueInfo& input, size_t axis) const {
  const ImportedDim& dim = input.dims[axis];
  if (dim.value >= 0 || dim.symbol.empty()) return nullptr;
  const auto range = options_.ranges.find(dim.symbol);
  if (range == options_.ranges.end() || range->second.minimum == range->second.maximum) return nullptr;
  // A --shape with the maximum is one of the range (check_options).
  if (const auto shape = options_.shapes.find(input.name);
      shape != options_.shapes.end() && shape->second[axis] != range->second.maximum)
    return nullptr;
  return &range->second;
}

ValueId GivenLengths::length_of(const std::string& name, const DimRange& range) {
  const auto [at, fresh] = lengths_.emplace(name, kAbsent);
  if (fresh) {
    at->second = lowering_.graph().add_value(fmt::format("length of {}", name), DType::kInt64, {});
    lowering_.lengths().given(at->second, {range.minimum, range.maximum}, name);
  }
  return at->second;
}

}  // namespace sinter::convert
