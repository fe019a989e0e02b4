// The number of elements of a Slice whose start is computed at run time.
#include <algorithm>
#include <unordered_map>

#include "converter/import/lower.h"
#include "converter/import/lower/slice.h"

namespace sinter::convert {
namespace {

// An element of a value that was computed at run time, plus a constant; without a root just the constant.
struct Term {
  ValueId root = kAbsent;
  int64_t index = 0, offset = 0;
};

constexpr int64_t kFurthest = int64_t{1} << 40;  // that a start can be from its end
constexpr int kMostSteps = 64;                   // between a start and what it shares with its end

// Follows single elements of integer vectors back through what only moves them or adds constants.
class Terms {
 public:
  explicit Terms(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes)
      for (const ValueId id : node.outputs)
        if (id >= 0) producer_[id] = &node;
  }

  Term of(ValueId id, int64_t index, int depth = 0) const {
    const Value& value = graph_.value(id);
    if (value.constant) return {kAbsent, 0, value.constant->as_int64s()[static_cast<size_t>(index)]};
    const auto made = producer_.find(id);
    if (made == producer_.end() || depth > kMostSteps) return {id, index, 0};
    const Node& node = *made->second;
    const auto from = [&](size_t i, int64_t at) { return of(node.inputs[i], at, depth + 1); };
    const ValueId x = node.inputs.empty() ? kAbsent : node.inputs[0];
    const auto* view = node.as<ViewAttrs>();
    if (node.as<CopyAttrs>() != nullptr || (view != nullptr && view->dtype < 0)) return from(0, index);
    if (node.as<CastAttrs>() != nullptr && whole(x) && whole(id)) return from(0, index);
    const auto* sum = node.as<AddAttrs>();
    if ((sum != nullptr || node.as<SubAttrs>() != nullptr) && graph_.value(id).dims.size() < 2) {
      const auto place = [&](size_t i) {
        return element_count(graph_.value(node.inputs[i]).dims) == 1 ? 0 : index;
      };
      const size_t constant = graph_.is_constant(node.inputs[1]) ? 1 : 0;
      if (!graph_.is_constant(node.inputs[constant]) || (constant == 0 && sum == nullptr))
        return {id, index, 0};
      const int64_t more = from(constant, place(constant)).offset;
      if (more < -kFurthest || more > kFurthest) return {id, index, 0};
      Term term = from(1 - constant, place(1 - constant));
      term.offset += sum != nullptr ? more : -more;
      return term;
    }
    if (x < 0 || graph_.value(x).dims.size() != 1) return {id, index, 0};
    if (const auto* slice = node.as<SliceAttrs>()) return from(0, slice->starts[0] + index * slice->steps[0]);
    if (node.as<ConcatAttrs>() != nullptr)
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const int64_t size = element_count(graph_.value(node.inputs[i]).dims);
        if (index < size) return from(i, index);
        index -= size;
      }
    if (node.as<GatherAttrs>() != nullptr)
      if (const ConstantPtr& at = graph_.value(node.inputs[1]).constant) {
        const int64_t i = at->as_int64s()[static_cast<size_t>(index)], size = graph_.value(x).dims[0];
        return from(0, i < 0 ? i + size : i);
      }
    return {id, index, 0};
  }

 private:
  bool whole(ValueId id) const {
    return id >= 0 && (graph_.value(id).dtype == DType::kInt64 || graph_.value(id).dtype == DType::kInt32);
  }
  const Graph& graph_;
  std::unordered_map<ValueId, const Node*> producer_;
};

}  // namespace

SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t dim) {
  // A step beyond the axis takes one element, for any size.
  step = std::clamp<int64_t>(step, -(dim + 1), dim + 1);
  int64_t begin = start < 0 ? start + dim : start;
  end = end < 0 ? end + dim : end;
  int64_t count;
  if (step > 0) {
    begin = std::clamp<int64_t>(begin, 0, dim), end = std::clamp<int64_t>(end, 0, dim);
    count = end > begin ? (end - begin + step - 1) / step : 0;
  } else {
    begin = std::clamp<int64_t>(begin, -1, dim - 1), end = std::clamp<int64_t>(end, -1, dim - 1);
    count = begin > end ? (begin - end - step - 1) / -step : 0;
  }
  return {count == 0 ? 0 : begin, count, count <= 1 ? 1 : step};
}

std::vector<int64_t> running_extents(NodeLowering& n) {
  const ValueId starts = n.input(1), ends = n.input(2);
  if (starts < 0 || ends < 0 || n.rank(starts) > 1 || n.size(starts) != n.size(ends)) return {};
  for (const ValueId v : {starts, ends})
    if (n.dtype(v) != DType::kInt64 && n.dtype(v) != DType::kInt32) return {};
  const Terms terms(n.parent().graph());
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < n.size(starts); ++i) {
    const Term begin = terms.of(starts, i), end = terms.of(ends, i);
    const bool runs = begin.root != kAbsent && begin.root == end.root && begin.index == end.index;
    extents.push_back(runs ? std::max<int64_t>(end.offset - begin.offset, 0) : -1);
  }
  return extents;
}

}  // namespace sinter::convert
