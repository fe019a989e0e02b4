#include "converter/export/axes.h"

#include <algorithm>
#include <numeric>

namespace sinter::convert {
namespace {

// Returns the axes longer than 1.
Axes long_axes(const Dims& dims) {
  Axes axes;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1) axes.push_back(static_cast<int>(i));
  return axes;
}

Axes without_short(const Dims& dims, const Axes& axes) {
  Axes kept;
  for (const int a : axes)
    if (a >= 0 && dims[static_cast<size_t>(a)] != 1) kept.push_back(a);
  return kept;
}

}  // namespace

Axes same_axes(size_t rank) {
  Axes axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Axes channels_first(size_t rank) {
  Axes axes{0};
  if (rank > 1) axes.push_back(static_cast<int>(rank) - 1);
  for (size_t i = 1; i + 1 < rank; ++i) axes.push_back(static_cast<int>(i));
  return axes;
}

Axes natural_axes(const Value& value) {
  Axes axes = same_axes(value.dims.size());
  if (value.order.size() == axes.size())
    for (size_t i = 0; i < axes.size(); ++i) axes[static_cast<size_t>(value.order[i])] = static_cast<int>(i);
  return axes;
}

Axes broadcast_axes(const Axes& axes, size_t rank) {
  Axes own;
  const int missing = static_cast<int>(axes.size()) - static_cast<int>(rank);
  for (const int a : axes) own.push_back(a >= missing ? a - missing : -1);
  return own;
}

Dims tensor_dims(const Dims& dims, const Axes& axes) {
  Dims result;
  for (const int a : axes) result.push_back(a < 0 ? 1 : dims[static_cast<size_t>(a)]);
  return result;
}

bool same_bytes(const Dims& dims, const Axes& a, const Axes& b) {
  return without_short(dims, a) == without_short(dims, b);
}

bool same_tensor(const Dims& dims, const Axes& a, const Axes& b) {
  return same_bytes(dims, a, b) && tensor_dims(dims, a) == tensor_dims(dims, b);
}

Axes as_permutation(const Axes& axes, size_t rank) {
  if (axes.size() != rank) return {};
  Axes all = axes;
  int next = 0;
  for (int& a : all) {
    if (a >= 0) continue;
    while (std::find(axes.begin(), axes.end(), next) != axes.end()) ++next;
    a = next++;
  }
  return all;
}

int64_t position_of(const Axes& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<int>(axis)) - axes.begin();
}

std::vector<int64_t> permutation(const Dims& dims, const Axes& from, const Axes& to) {
  const auto is_long = [&](int a) { return a >= 0 && dims[static_cast<size_t>(a)] != 1; };
  std::vector<int64_t> result;
  int64_t next = 0;
  for (const int a : to) {
    if (is_long(a)) {
      result.push_back(position_of(from, a));
      continue;
    }
    while (is_long(from[static_cast<size_t>(next)])) ++next;
    result.push_back(next++);
  }
  return result;
}

bool passes_tensor_on(const Graph& graph, const Node& node) {
  if (node.as<TransposeAttrs>() != nullptr || node.as<CopyAttrs>() != nullptr) return true;
  const auto* view = node.as<ViewAttrs>();
  if (view == nullptr) return false;
  const Value &x = graph.value(node.inputs[0]), &y = graph.value(node.outputs[0]);
  Dims from, to;
  for (const int64_t d : x.dims)
    if (d != 1) from.push_back(d);
  for (const int64_t d : y.dims)
    if (d != 1) to.push_back(d);
  return x.dtype == y.dtype && from == to;
}

namespace {

// Replaces the axes longer than 1 of `from` by those of `to`, which has them in the same order.
Axes through_view(const Dims& from, const Dims& to, const Axes& axes) {
  const Axes before = long_axes(from), behind = long_axes(to);
  Axes result;
  for (const int a : axes) {
    const auto at = std::find(before.begin(), before.end(), a);
    result.push_back(at == before.end() ? -1 : behind[static_cast<size_t>(at - before.begin())]);
  }
  return result;
}

}  // namespace

Axes axes_behind(const Graph& graph, const Node& node, const Axes& of_operand) {
  const auto* transpose = node.as<TransposeAttrs>();
  if (transpose == nullptr)
    return through_view(graph.value(node.inputs[0]).dims, graph.value(node.outputs[0]).dims, of_operand);
  Axes result;
  for (const int a : of_operand) {
    const auto at = std::find(transpose->perm.begin(), transpose->perm.end(), a);
    result.push_back(a < 0 ? -1 : static_cast<int>(at - transpose->perm.begin()));
  }
  return result;
}

Axes axes_before(const Graph& graph, const Node& node, const Axes& of_result) {
  const auto* transpose = node.as<TransposeAttrs>();
  if (transpose == nullptr)
    return through_view(graph.value(node.outputs[0]).dims, graph.value(node.inputs[0]).dims, of_result);
  Axes result;
  for (const int a : of_result) result.push_back(a < 0 ? -1 : static_cast<int>(transpose->perm[a]));
  return result;
}

}  // namespace sinter::convert
