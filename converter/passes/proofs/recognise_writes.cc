// recognise-writes: a ScatterNd whose constant indices are a range of one axis becomes a join, without
// indices.
//
// This is how exporters write assignments to slices: y[:, 3:] = a, or y[..., 0::2] = a; y[..., 1::2] = b.
// Along the axis, rows of y come from the last write to them, and from what was there before. Writes to every
// n-th row are joined if together they fill y.
#include <algorithm>
#include <numeric>

#include "converter/flow/slice_along.h"
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

constexpr int64_t kMostIndices = int64_t{1} << 26;
constexpr size_t kMostParts = 16;  // joins have no more parts

// Write writes rows first, first + step, ... of an axis, each as a whole.
struct Write {
  size_t axis = 0;
  int64_t first = 0, step = 1, count = 0;
  ValueId rows = kAbsent;
};

class WriteRecogniser {
 public:
  explicit WriteRecogniser(Graph& graph) : e_(graph) {}

  int run() {
    // The last of several writes joins them all.
    for (int n = e_.size(); n-- > 0;)
      if (e_.node(n).as<ScatterNdAttrs>() != nullptr && e_.reads(e_.node(n).outputs[0]) > 0) join(n);
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }

  // Returns the write at indices [r0, ..., rk-1, k] whose i-th number depends on the place along axis i
  // alone.
  std::optional<Write> write_of(int n) {
    const Node& node = e_.node(n);
    const auto* scatter = node.as<ScatterNdAttrs>();
    const ConstantPtr& indices = e_.value(node.inputs[1]).constant;
    if (scatter == nullptr || scatter->reduction != static_cast<int64_t>(ScatterReduction::kNone) || !indices)
      return std::nullopt;
    for (const auto* list : {&node.inputs, &node.outputs})
      for (const ValueId id : *list)
        if (!e_.value(id).bounded_dims.empty()) return std::nullopt;
    const Dims &whole = dims(node.inputs[0]), &shape = indices->dims();
    const size_t k = shape.size() - 1;
    if (k == 0 || shape[k] != static_cast<int64_t>(k) || indices->size() == 0 ||
        indices->size() > kMostIndices)
      return std::nullopt;
    const std::vector<int64_t> numbers = indices->as_int64s();
    Write write{.rows = node.inputs[2]};
    std::vector<std::vector<int64_t>> places(k);  // by axis
    for (size_t axis = 0; axis < k; ++axis) {
      const size_t apart = std::accumulate(shape.begin() + static_cast<ptrdiff_t>(axis) + 1, shape.end(),
                                           size_t{1}, std::multiplies<>());
      for (int64_t i = 0; i < shape[axis]; ++i) {
        const int64_t number = numbers[static_cast<size_t>(i) * apart + axis];
        places[axis].push_back(number < 0 ? number + whole[axis] : number);
      }
      const std::vector<int64_t>& p = places[axis];
      const int64_t step = p.size() > 1 ? p[1] - p[0] : 1;
      for (size_t i = 1; i < p.size(); ++i)
        if (step < 1 || p[i] - p[i - 1] != step) return std::nullopt;
      if (p.front() < 0 || p.back() >= whole[axis]) return std::nullopt;
      if (shape[axis] == whole[axis]) continue;
      if (write.count > 0) return std::nullopt;
      write.axis = axis, write.first = p[0], write.step = step, write.count = shape[axis];
    }
    if (write.count == 0) write.count = whole[0];
    std::vector<size_t> at(k);
    for (size_t i = 0; i < numbers.size(); i += k) {
      for (size_t axis = 0; axis < k; ++axis) {
        const int64_t number = numbers[i + axis];
        if ((number < 0 ? number + whole[axis] : number) != places[axis][at[axis]]) return std::nullopt;
      }
      for (size_t axis = k; axis-- > 0;) {
        if (++at[axis] < places[axis].size()) break;
        at[axis] = 0;
      }
    }
    return write;
  }

  void join(int n) {
    const auto last = write_of(n);
    if (!last) return;
    std::vector<Write> writes{*last};  // the last one first
    ValueId before = e_.node(n).inputs[0];
    for (int m = e_.made_by<ScatterNdAttrs>(before); m >= 0 && writes.size() < kMostParts;
         m = e_.made_by<ScatterNdAttrs>(before)) {
      const auto write = write_of(m);
      if (!write || write->axis != last->axis || write->step != last->step) break;
      writes.push_back(*write);
      before = e_.node(m).inputs[0];
    }
    last->step > 1 ? interleave(n, writes) : concatenate(n, writes, before);
  }

  // Joins writes that each have their place among `step` neighbours.
  void interleave(int n, const std::vector<Write>& writes) {
    const Dims whole = dims(e_.node(n).outputs[0]);
    const auto [axis, first, step, count, rows] = writes[0];
    if (step > static_cast<int64_t>(kMostParts) || step * count != whole[axis] || whole.size() >= kMaxRank)
      return;
    std::vector<ValueId> parts(static_cast<size_t>(step), kAbsent);
    for (const Write& write : writes) {
      if (write.count != count || write.first >= step) return;
      ValueId& part = parts[static_cast<size_t>(write.first)];
      if (part < 0) part = write.rows;
    }
    if (std::count(parts.begin(), parts.end(), kAbsent) > 0) return;
    Dims single = whole;
    single[axis] = count;
    single.insert(single.begin() + static_cast<ptrdiff_t>(axis) + 1, 1);
    for (ValueId& part : parts) part = e_.insert(n, ViewAttrs{IntList(single)}, {part});
    const ValueId joined = e_.insert(n, ConcatAttrs{static_cast<int64_t>(axis) + 1}, parts);
    if (joined >= 0) e_.replace(n, ViewAttrs{IntList(whole)}, {joined});
  }

  // Joins runs of rows, each from one write or from `before`.
  void concatenate(int n, const std::vector<Write>& writes, ValueId before) {
    const int64_t length = dims(before)[writes[0].axis];
    struct Run {
      ValueId from;
      int64_t start, count;
    };
    const size_t axis = writes[0].axis;
    std::vector<Run> runs;
    int64_t written = 0;
    for (int64_t row = 0; row < length; ++row) {
      const auto write = std::find_if(writes.begin(), writes.end(), [&](const Write& w) {
        return row >= w.first && row < w.first + w.count;
      });
      const ValueId from = write != writes.end() ? write->rows : before;
      const int64_t start = write != writes.end() ? row - write->first : row;
      written += write != writes.end();
      if (!runs.empty() && runs.back().from == from && runs.back().start + runs.back().count == start)
        ++runs.back().count;
      else
        runs.push_back({from, start, 1});
      if (runs.size() > kMostParts) return;
    }
    // A few rows of what the caller keeps are written in place.
    if (e_.producer(before) < 0 && !e_.value(before).constant && 2 * written < length) return;
    std::vector<ValueId> parts;
    for (const Run& run : runs)
      parts.push_back(
          run.count == dims(run.from)[axis]
              ? run.from
              : e_.insert(n, slice_along(dims(run.from), axis, run.start, run.count), {run.from}));
    if (std::count(parts.begin(), parts.end(), kAbsent) > 0) return;
    if (parts.size() == 1)
      e_.bypass(n, parts[0]);
    else
      e_.replace(n, ConcatAttrs{static_cast<int64_t>(axis)}, parts);
  }

  Editor e_;
};

}  // namespace

int recognise_writes(Graph& graph) { return recognise_row_writes(graph) + WriteRecogniser(graph).run(); }

}  // namespace sinter::convert
