// Rows of reductions, extremes, running sums, and normalizations along axes.
#include <algorithm>

#include "converter/export/rows.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

// Returns the order of a result that lacks these axes of an operand whose axes have this order.
Axes without(const Axes& axes, const IntList& dropped) {
  const auto is_dropped = [&](int a) {
    return std::find(dropped.begin(), dropped.end(), a) != dropped.end();
  };
  Axes left;
  for (const int a : axes)
    if (!is_dropped(a))
      left.push_back(a - static_cast<int>(std::count_if(dropped.begin(), dropped.end(),
                                                        [&](int64_t d) { return d < a; })));
  return left;
}

std::vector<int64_t> positions_of(const Axes& axes, const IntList& list) {
  std::vector<int64_t> result;
  for (const int64_t axis : list) result.push_back(position_of(axes, axis));
  std::sort(result.begin(), result.end());
  return result;
}

// A reduction over no axis.
bool reduce_elements(NodeExport& n, ReduceFn fn, const std::string& x, const std::string& y) {
  if (fn == ReduceFn::kSumSquare)
    n.add("Mul", {x, x}, {y});
  else
    n.add(fn == ReduceFn::kL1 ? "Abs" : "Identity", {x}, {y});
  return true;
}

// Returns the name of the pool over all spatial axes that the reduction was in the model.
const char* global_pool(const NodeExport& n, const ReduceAttrs& a, const Axes& axes) {
  const std::vector<int64_t> positions = positions_of(axes, a.axes);
  const size_t rank = axes.size();
  if (rank < 3 || a.keepdims == 0 || positions.size() != rank - 2 || positions.front() != 2) return nullptr;
  if (n.node().origin == "GlobalAveragePool" && a.fn == static_cast<int64_t>(ReduceFn::kMean))
    return "GlobalAveragePool";
  if (n.node().origin == "GlobalMaxPool" && a.fn == static_cast<int64_t>(ReduceFn::kMax))
    return "GlobalMaxPool";
  return nullptr;
}

}  // namespace

bool write_row(NodeExport& n, const ReduceAttrs& a) {
  constexpr const char* kNames[] = {"ReduceSum",  "ReduceMean",      "ReduceMax", "ReduceMin",
                                    "ReduceProd", "ReduceSumSquare", "ReduceL1",  "ReduceLogSumExp"};
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes), y = n.out(0, a.keepdims != 0 ? axes : without(axes, a.axes));
  if (a.axes.empty()) return reduce_elements(n, static_cast<ReduceFn>(a.fn), x, y);
  if (const char* pool = global_pool(n, a, axes))
    n.add(pool, {x}, {y});
  else
    n.reduce(kNames[a.fn], x, positions_of(axes, a.axes), a.keepdims != 0, y);
  return true;
}

bool write_row(NodeExport& n, const ArgReduceAttrs& a) {
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes), y = n.out(0, a.keepdims != 0 ? axes : without(axes, IntList{a.axis}));
  const bool most = static_cast<ArgReduceFn>(a.fn) == ArgReduceFn::kMax;
  OnnxNode node = n.add(most ? "ArgMax" : "ArgMin", {x}, {y});
  node.set("axis", position_of(axes, a.axis)).set("keepdims", a.keepdims);
  if (a.select_last != 0) node.set("select_last_index", a.select_last);
  return true;
}

bool write_row(NodeExport& n, const CumulateAttrs& a) {
  if (static_cast<CumulateFn>(a.fn) == CumulateFn::kProd && !n.needs_opset(26, "CumProd")) return false;
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes);
  const std::string axis = n.scalar(DType::kInt64, static_cast<double>(position_of(axes, a.axis)));
  OnnxNode node = n.add("CumSum", {x, axis}, {n.out(0, axes)});
  if (a.exclusive != 0) node.set("exclusive", a.exclusive);
  if (a.reverse != 0) node.set("reverse", a.reverse);
  return true;
}

bool write_row(NodeExport& n, const TopKAttrs& a) {
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes), values = n.out(0, axes), indices = n.out(1, axes);
  n.add("TopK", {x, n.ints({a.k})}, {values.empty() ? n.temporary() : values, indices})
      .set("axis", position_of(axes, a.axis))
      .set("largest", a.largest)
      .set("sorted", a.sorted);
  return true;
}

bool write_row(NodeExport& n, const SoftmaxAttrs& a) {
  const Axes axes = n.axes_of(0);
  const std::string x = n.in(0, axes);
  n.add(a.log != 0 ? "LogSoftmax" : "Softmax", {x}, {n.out(0, axes)}).set("axis", position_of(axes, a.axis));
  return true;
}

}  // namespace sinter::convert
