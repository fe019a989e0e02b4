#include "converter/flow/element_map.h"

#include <algorithm>

#include "converter/ir/op_traits.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Lets the axes of an operand that is broadcast follow those of the result, from the last one on.
void align(const Dims& own, const Dims& result, std::vector<AxisSource>* axes) {
  const size_t missing = result.size() - own.size();
  for (size_t b = 0; b < own.size(); ++b) {
    (*axes)[b].axis = static_cast<int>(b + missing);
    if (own[b] != result[b + missing]) (*axes)[b].step = 0;
  }
}

// Lets `count` axes from `first` on follow those of the result from `to` on.
void follow(std::vector<AxisSource>* axes, size_t first, size_t count, size_t to) {
  for (size_t i = 0; i < count; ++i) (*axes)[first + i].axis = static_cast<int>(to + i);
}

}  // namespace

int ElementMap::following(int axis) const {
  const auto at = std::find_if(axes.begin(), axes.end(), [&](const AxisSource& a) { return a.axis == axis; });
  return at == axes.end() ? -1 : static_cast<int>(at - axes.begin());
}

OperandDims operand_dims(const Graph& graph, const Node& node) {
  OperandDims dims;
  for (const ValueId id : node.inputs) dims.push_back(id < 0 ? nullptr : &graph.value(id).dims);
  return dims;
}

std::optional<ElementMap> element_map(const OpAttrs& attrs, const OperandDims& operands, const Dims& result,
                                      size_t operand) {
  if (operand >= operands.size() || operands[operand] == nullptr) return std::nullopt;
  const Dims& own = *operands[operand];
  const size_t rank = own.size();
  ElementMap map;
  std::vector<AxisSource>& axes = map.axes;
  axes.resize(rank);
  if (const auto* view = std::get_if<ViewAttrs>(&attrs)) {
    if (view->dtype >= 0) return std::nullopt;
    map.is_flat = true;
    axes.clear();
  } else if (is_elementwise(op_of(attrs)) || std::holds_alternative<BroadcastAttrs>(attrs)) {
    if (rank > result.size()) return std::nullopt;
    align(own, result, &axes);
  } else if (const auto* transpose = std::get_if<TransposeAttrs>(&attrs)) {
    for (size_t i = 0; i < rank; ++i)
      axes.at(static_cast<size_t>(transpose->perm[static_cast<int>(i)])).axis = static_cast<int>(i);
  } else if (const auto* slice = std::get_if<SliceAttrs>(&attrs)) {
    follow(&axes, 0, rank, 0);
    for (size_t i = 0; i < rank; ++i)
      axes[i].first = slice->starts[static_cast<int>(i)], axes[i].step = slice->steps[static_cast<int>(i)];
  } else if (std::holds_alternative<TileAttrs>(attrs)) {
    follow(&axes, 0, rank, 0);
    for (size_t i = 0; i < rank; ++i) axes[i].repeats = own[i] != result[i];
  } else if (const auto* concat = std::get_if<ConcatAttrs>(&attrs)) {
    const auto along = static_cast<size_t>(concat->axis);
    follow(&axes, 0, rank, 0);
    for (size_t k = 0; k < operand; ++k) axes.at(along).first -= (*operands[k])[along];
  } else if (const auto* pad = std::get_if<PadAttrs>(&attrs)) {
    if (operand > 0) return map;  // all elements read its one number
    follow(&axes, 0, rank, 0);
    for (size_t i = 0; i < rank; ++i) {
      axes[i].first = -pad->pads[static_cast<int>(i)];
      const bool grows = axes[i].first != 0 || pad->pads[static_cast<int>(i + rank)] != 0;
      if (grows && static_cast<PadMode>(pad->mode) != PadMode::kConstant) axes[i].axis = AxisSource::kOther;
    }
  } else if (const auto* gather = std::get_if<GatherAttrs>(&attrs)) {
    const auto along = static_cast<size_t>(gather->axis);
    const size_t picks = operands.at(1)->size();
    if (operand == 1) return follow(&axes, 0, rank, along), map;
    follow(&axes, 0, along, 0);
    axes.at(along).axis = AxisSource::kGiven;
    follow(&axes, along + 1, rank - along - 1, along + picks);
  } else if (const auto* nd = std::get_if<GatherNdAttrs>(&attrs)) {
    const auto batch = static_cast<size_t>(nd->batch_dims), picks = operands.at(1)->size() - 1;
    if (operand == 1) return follow(&axes, 0, picks, 0), map;  // the last axis has the numbers of a tuple
    const auto tuple = static_cast<size_t>(operands[1]->back());
    follow(&axes, 0, batch, 0);
    for (size_t i = 0; i < tuple; ++i)
      axes.at(batch + i).axis = AxisSource::kGiven, axes[batch + i].component = static_cast<int64_t>(i);
    follow(&axes, batch + tuple, rank - batch - tuple, picks);
  } else if (const auto* elements = std::get_if<GatherElementsAttrs>(&attrs)) {
    follow(&axes, 0, rank, 0);
    if (operand == 0) axes.at(static_cast<size_t>(elements->axis)).axis = AxisSource::kGiven;
  } else {
    return std::nullopt;
  }
  return map;
}

std::optional<ElementMap> element_map(const Graph& graph, const Node& node, size_t operand) {
  return element_map(node.attrs, operand_dims(graph, node), graph.value(node.outputs[0]).dims, operand);
}

ElementSources::ElementSources(const OpAttrs& attrs, OperandDims operands, const Dims& result)
    : operands_(std::move(operands)), result_(result) {
  for (size_t k = 0; k < operands_.size(); ++k) maps_.push_back(element_map(attrs, operands_, result, k));
  if (!moves(op_of(attrs)) || maps_.empty() || !maps_[0]) return;
  const Elements elements = elements_of(op_of(attrs));
  // The elements beyond operand 0 are the fill of a Pad in one mode only.
  const bool may_leave = elements == Elements::kJoined || elements == Elements::kPadded;
  moved_ = may_leave && maps_[0]->following(AxisSource::kOther) < 0 ? operands_.size() : 1;
}

std::optional<int64_t> ElementSources::place_in(size_t operand, int64_t i, const Index& index) const {
  if (!maps_[operand]) return std::nullopt;
  const ElementMap& map = *maps_[operand];
  if (map.is_flat) return i;
  int64_t at[kMaxRank] = {}, left = i, place = 0;
  for (size_t a = result_.size(); a-- > 0; left /= result_[a]) at[a] = left % result_[a];
  const Dims& own = *operands_[operand];
  for (size_t b = 0; b < own.size(); ++b) {
    const AxisSource& from = map.axes[b];
    int64_t entry = 0;
    if (from.axis == AxisSource::kGiven) {
      const auto number = index ? index(*place_in(1, i) + from.component) : std::nullopt;
      entry = !number ? -1 : *number < 0 ? *number + own[b] : *number;
    } else if (from.axis >= 0) {
      entry = from.entry(at[from.axis], own[b]);
    }
    if (from.axis == AxisSource::kOther || entry < 0 || entry >= own[b]) return std::nullopt;
    place = place * own[b] + entry;
  }
  return place;
}

std::optional<ElementSources::Source> ElementSources::of(int64_t i, const Index& index) const {
  for (size_t k = 0; k < moved_; ++k)
    if (const auto place = place_in(k, i, index)) return Source{k, *place};
  return std::nullopt;
}

}  // namespace sinter::convert
