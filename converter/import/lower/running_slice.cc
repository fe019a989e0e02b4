#include <algorithm>
#include <unordered_map>

#include "converter/import/lower.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/slice.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// An element of a value that was computed while running, plus a constant; without a root just the constant.
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

// `count` elements of x along `axis` from `start` on (int64 []; negative: from the end), the last one before
// start + extent.
ValueId gathered(NodeLowering& n, ValueId x, int64_t axis, ValueId start, int64_t extent, int64_t count,
                 int64_t step) {
  const int64_t dim = n.dims(x)[static_cast<size_t>(axis)];
  const auto number = [&](int64_t v) { return n.add_constant(Constant::scalar_int(DType::kInt64, v)); };
  const auto compared = [&](CompareFn fn, ValueId a, ValueId b) {
    return n.emit(CompareAttrs{static_cast<int64_t>(fn)}, {a, b});
  };
  const auto from_front = [&](ValueId v) {
    return n.emit(WhereAttrs{}, {compared(CompareFn::kLess, v, number(0)), n.add(v, number(dim)), v});
  };
  const ValueId begin = from_front(start), end = from_front(n.add(start, number(extent)));
  // Anything else is shorter in ONNX: an index outside the axis fails the run.
  ValueId good = kAbsent;
  for (const ValueId condition : {compared(CompareFn::kGreaterOrEqual, begin, number(0)),
                                  compared(CompareFn::kLessOrEqual, end, number(dim)),
                                  compared(CompareFn::kEqual, n.sub(end, begin), number(extent))})
    good = good == kAbsent ? condition
                           : n.emit(BitwiseAttrs{static_cast<int64_t>(BitwiseFn::kAnd)}, {good, condition});
  const ValueId first = n.emit(WhereAttrs{}, {good, begin, number(dim)});
  const ValueId index = n.add(first, n.mul(index_row(n, count), number(step)));
  return n.emit(GatherAttrs{axis}, {x, index});
}

}  // namespace

SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t dim) {
  // A step beyond the axis takes one element, whatever its size.
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

ValueId running_slice(NodeLowering& n) {
  const ValueId starts = n.input(1), ends = n.input(2);
  if (starts < 0 || ends < 0 || n.rank(starts) > 1 || n.size(starts) != n.size(ends)) return kAbsent;
  for (const ValueId v : {starts, ends})
    if (n.dtype(v) != DType::kInt64 && n.dtype(v) != DType::kInt32) return kAbsent;
  for (const size_t i : {size_t{3}, size_t{4}})
    if (n.has_input(i) && (!n.constant(n.input(i)) || n.size(n.input(i)) != n.size(starts))) return kAbsent;
  std::vector<int64_t> axes, steps(static_cast<size_t>(n.size(starts)), 1);
  for (int64_t i = 0; i < n.size(starts); ++i) axes.push_back(i);
  if (n.has_input(3)) axes = n.constant(n.input(3))->as_int64s();
  if (n.has_input(4)) steps = n.constant(n.input(4))->as_int64s();
  ValueId y = n.input(0);
  if (!n.normalize_axes(&axes, n.rank(y))) return kUnknown;
  const Terms terms(n.parent().graph());
  std::vector<std::pair<Term, Term>> ranges;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Term begin = terms.of(starts, static_cast<int64_t>(i)),
               end = terms.of(ends, static_cast<int64_t>(i));
    if (begin.root != end.root || begin.index != end.index) return kAbsent;
    if (steps[i] == 0 || (begin.root != kAbsent && steps[i] < 0)) return kAbsent;
    ranges.emplace_back(begin, end);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto& [begin, end] = ranges[i];
    const int64_t axis = axes[i], dim = n.dims(y)[static_cast<size_t>(axis)];
    const int64_t extent = begin.root == kAbsent ? 0 : end.offset - begin.offset;
    if (begin.root == kAbsent) {
      const SliceRange r = slice_range(begin.offset, end.offset, steps[i], dim);
      y = n.slice(y, axis, r.begin, r.count, r.step);
    } else if (extent <= 0) {
      y = n.slice(y, axis, 0, 0);
    } else if (extent > dim) {
      return n.refuse_shapes("takes {} of {} elements along axis {}", extent, dim, axis), kUnknown;
    } else {
      const ValueId flat = n.cast(n.reshape(starts, {n.size(starts)}), DType::kInt64);
      const ValueId start = n.reshape(n.slice(flat, 0, static_cast<int64_t>(i), 1), {});
      const int64_t step = std::min(steps[i], dim);
      y = gathered(n, y, axis, start, extent, (extent + step - 1) / step, step);
    }
  }
  return y;
}

}  // namespace sinter::convert
