// Rows of operations that move elements.
#include <algorithm>
#include <limits>

#include "converter/export/rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

std::vector<int64_t> ordered(const IntList& list, const Axes& axes) {
  std::vector<int64_t> result;
  for (const int a : axes) result.push_back(list[a]);
  return result;
}

// Returns numbers of the begins of all axes, then of the ends.
std::vector<int64_t> ordered_pairs(const IntList& list, const Axes& axes) {
  std::vector<int64_t> result = ordered(list, axes);
  for (const int a : axes) result.push_back(list[a + static_cast<int>(axes.size())]);
  return result;
}

}  // namespace

bool write_row(NodeExport& n, const ViewAttrs&) {
  if (n.dtype(0) != n.result_value().dtype)
    return n.refuse("it reads numbers as another type, by an operator that ONNX has in later versions only",
                    "convert the numbers by a Cast");
  const std::string x = n.in(0), y = n.out();
  const Dims& dims = n.result_value().dims;
  n.reshape(x, dims, y);
  return true;
}

bool write_row(NodeExport& n, const TransposeAttrs& a) {
  const std::string x = n.in(0);
  n.add("Transpose", {x}, {n.out()}).set_ints("perm", a.perm);
  return true;
}

bool write_row(NodeExport& n, const SliceAttrs& a) {
  const Axes axes = n.axes_of(0);
  std::vector<int64_t> starts, ends, which, steps;
  bool forward = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = axes[i];
    const int64_t start = a.starts[axis], step = a.steps[axis], size = a.sizes[axis];
    if (start == 0 && step == 1 && size == n.dims(0)[static_cast<size_t>(axis)]) continue;
    const int64_t end = start + step * size;
    starts.push_back(start), steps.push_back(step), which.push_back(static_cast<int64_t>(i));
    ends.push_back(end < 0 ? std::numeric_limits<int64_t>::min() : end);
    forward &= step == 1;
  }
  const std::string x = n.in(0, axes), y = n.out(0, axes);
  if (starts.empty()) {
    n.add("Identity", {x}, {y});
    return true;
  }
  n.add("Slice", {x, n.ints(starts), n.ints(ends), n.ints(which), forward ? "" : n.ints(steps)}, {y});
  return true;
}

bool write_row(NodeExport& n, const ConcatAttrs& a) {
  std::vector<size_t> all;
  for (size_t i = 0; i < n.node().inputs.size(); ++i) all.push_back(i);
  const Axes axes = n.common_axes(all);
  std::vector<std::string> inputs;
  for (const size_t i : all) inputs.push_back(n.in(i, axes));
  n.add("Concat", inputs, {n.out(0, axes)}).set("axis", position_of(axes, a.axis));
  return true;
}

bool write_row(NodeExport& n, const TileAttrs& a) {
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes);
  n.add("Tile", {x, n.ints(ordered(a.repeats, axes))}, {n.out(0, axes)});
  return true;
}

bool write_row(NodeExport& n, const BroadcastAttrs&) {
  const Dims& dims = n.result_value().dims;
  const Axes axes = n.rank(0) == dims.size() ? n.axes_of(0) : same_axes(dims.size());
  const std::string x = n.rank(0) == dims.size() ? n.in(0, axes) : n.in(0);
  n.add("Expand", {x, n.ints(tensor_dims(dims, axes))}, {n.out(0, axes)});
  return true;
}

bool write_row(NodeExport& n, const PadAttrs& a) {
  constexpr const char* kModes[] = {"constant", "reflect", "edge", "wrap"};
  if (static_cast<PadMode>(a.mode) == PadMode::kWrap && !n.needs_opset(19, "Pad's mode 'wrap'")) return false;
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes);
  std::string value = n.in(1);
  if (n.has(1) && n.rank(1) > 0) value = n.in(1, {});
  n.add("Pad", {x, n.ints(ordered_pairs(a.pads, axes)), value}, {n.out(0, axes)})
      .set("mode", std::string(kModes[a.mode]));
  return true;
}

// One index along an axis, or a list of them, leaves the other axes in their order.
bool write_row(NodeExport& n, const GatherAttrs& a) {
  const bool list = n.rank(1) == 1;
  const Axes axes = list ? n.axes_of(0) : same_axes(n.rank(0));
  const std::string x = n.in(0, axes), indices = n.in(1);
  n.add("Gather", {x, indices}, {list ? n.out(0, axes) : n.out()}).set("axis", position_of(axes, a.axis));
  return true;
}

bool write_row(NodeExport& n, const GatherElementsAttrs& a) {
  const Axes axes = n.common_axes({0, 1});
  const std::string x = n.in(0, axes), indices = n.in(1, axes);
  n.add("GatherElements", {x, indices}, {n.out(0, axes)}).set("axis", position_of(axes, a.axis));
  return true;
}

bool write_row(NodeExport& n, const GatherNdAttrs& a) {
  const std::string x = n.in(0), indices = n.in(1);
  n.add("GatherND", {x, indices}, {n.out()}).set("batch_dims", a.batch_dims);
  return true;
}

namespace {

// Adds the attribute of scatter operators. False: refused.
bool can_scatter(NodeExport& n, int64_t reduction) {
  const auto how = static_cast<ScatterReduction>(reduction);
  const bool orders = how == ScatterReduction::kMax || how == ScatterReduction::kMin;
  return (!orders || n.needs_opset(18, "scattering with 'max' and 'min'")) &&
         (how == ScatterReduction::kNone || n.needs_opset(16, "scattering with a reduction"));
}

void set_reduction(OnnxNode node, int64_t reduction) {
  constexpr const char* kReductions[] = {"none", "add", "mul", "max", "min"};
  if (reduction != 0) node.set("reduction", std::string(kReductions[reduction]));
}

}  // namespace

bool write_row(NodeExport& n, const ScatterElementsAttrs& a) {
  if (!can_scatter(n, a.reduction)) return false;
  const Axes axes = n.common_axes({0, 1, 2});
  const std::string x = n.in(0, axes), indices = n.in(1, axes), updates = n.in(2, axes);
  OnnxNode node = n.add("ScatterElements", {x, indices, updates}, {n.out(0, axes)});
  set_reduction(node.set("axis", position_of(axes, a.axis)), a.reduction);
  return true;
}

bool write_row(NodeExport& n, const ScatterNdAttrs& a) {
  if (!can_scatter(n, a.reduction)) return false;
  const std::string x = n.in(0), indices = n.in(1), updates = n.in(2);
  set_reduction(n.add("ScatterND", {x, indices, updates}, {n.out()}), a.reduction);
  return true;
}

bool write_row(NodeExport& n, const ReverseSequenceAttrs& a) {
  const std::string x = n.in(0);
  std::string lengths = n.in(1);
  if (n.dtype(1) != DType::kInt64) lengths = n.cast(lengths, DType::kInt64);
  n.add("ReverseSequence", {x, lengths}, {n.out()})
      .set("time_axis", a.time_axis)
      .set("batch_axis", a.batch_axis);
  return true;
}

bool write_row(NodeExport& n, const CacheUpdateAttrs&) {
  return n.refuse("TensorScatter is an operator of opset 24", "keep the cache out of the model");
}

}  // namespace sinter::convert
