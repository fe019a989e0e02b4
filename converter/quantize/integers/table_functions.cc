#include "converter/quantize/integers/table_functions.h"

#include <set>

#include "converter/ir/op_traits.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostNodes = 20;

bool scalar(const Value& v) { return v.constant && v.constant->size() == 1; }

}  // namespace

std::vector<ValueId> function_roots(const Graph& g) {
  std::vector<ValueId> roots(g.values.size());
  for (size_t i = 0; i < roots.size(); ++i) roots[i] = static_cast<ValueId>(i);
  std::vector<std::set<size_t>> parts(g.values.size());  // the nodes of every function
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    const Node& node = g.nodes[n];
    if (node.outputs.size() != 1 || node.outputs[0] < 0 || !node.bodies.empty() || !is_elementwise(node.op()))
      continue;
    const Value& out = g.value(node.outputs[0]);
    ValueId root = kAbsent;
    std::set<size_t> nodes = {n};
    bool one = out.bounded_dims.empty() && element_count(out.dims) > 0;
    for (const ValueId id : node.inputs) {
      if (!one) break;
      one = id >= 0 && (scalar(g.value(id)) || g.value(id).dims == out.dims);
      if (!one || scalar(g.value(id))) continue;
      const ValueId own = roots[static_cast<size_t>(id)];
      one = !g.is_constant(id) && (root == kAbsent || root == own);
      root = own;
      nodes.insert(parts[static_cast<size_t>(id)].begin(), parts[static_cast<size_t>(id)].end());
    }
    if (!one || root == kAbsent || g.value(root).dtype != DType::kFloat32 ||
        !g.value(root).bounded_dims.empty())
      continue;
    if (nodes.size() > kMostNodes) continue;
    roots[static_cast<size_t>(node.outputs[0])] = root;
    parts[static_cast<size_t>(node.outputs[0])] = std::move(nodes);
  }
  return roots;
}

bool is_function(const std::vector<ValueId>& roots, const Node& node) {
  return node.outputs.size() == 1 && node.outputs[0] >= 0 &&
         roots[static_cast<size_t>(node.outputs[0])] != node.outputs[0];
}

}  // namespace sinter::convert
