// Rotary embeddings of the first elements of each row, where the others pass (part of recognise-rope).
#include <map>
#include <vector>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

// Does `part` take one half of each row of `whole`, or every second element? Both are parts of one value.
bool takes_half(const SliceAttrs& part, const SliceAttrs& whole) {
  const int last = part.sizes.size() - 1;
  for (int i = 0; i < last; ++i)
    if (part.starts[i] != whole.starts[i] || part.sizes[i] != whole.sizes[i] || part.steps[i] != 1 ||
        whole.steps[i] != 1)
      return false;
  const int64_t length = whole.sizes[last], half = length / 2, first = part.starts[last] - whole.starts[last];
  if (whole.steps[last] != 1 || length % 2 != 0 || part.sizes[last] != half) return false;
  return part.steps[last] == 1 ? first == 0 || first == half
                               : part.steps[last] == 2 && (first == 0 || first == 1);
}

// Does a slice take `size` elements of each row from `start` on, of all rows of a value?
bool takes(const SliceAttrs& a, const Dims& dims, int64_t start, int64_t size) {
  const int last = a.sizes.size() - 1;
  for (int i = 0; i <= last; ++i)
    if (a.steps[i] != 1 || a.starts[i] != (i == last ? start : 0) ||
        a.sizes[i] != (i == last ? size : dims[static_cast<size_t>(i)]))
      return false;
  return true;
}

}  // namespace

// A slice of a slice is one slice by then; those that take halves of another one read that one again.
void nest_halves(Graph& graph) {
  Editor e(graph);
  std::map<ValueId, std::vector<int>> slices;  // by what they read
  for (int n = 0; n < e.size(); ++n) {
    const auto* part = e.node(n).as<SliceAttrs>();
    if (part == nullptr || part->sizes.size() == 0) continue;
    std::vector<int>& earlier = slices[e.node(n).inputs[0]];
    earlier.push_back(n);
    for (const int m : earlier) {
      const SliceAttrs& whole = *e.node(m).as<SliceAttrs>();
      if (m == n || !takes_half(*part, whole)) continue;
      SliceAttrs inner = *part;
      for (int i = 0; i < inner.starts.size(); ++i) inner.starts[i] -= whole.starts[i];
      earlier.pop_back();
      e.replace(n, inner, {e.node(m).outputs[0]});
      break;
    }
  }
  e.commit();
}

// Concat(Rope(x's first elements), x's other elements) is one Rope.
int join_passed(Graph& graph) {
  Editor e(graph);
  for (int n = 0; n < e.size(); ++n) {
    const Node& node = e.node(n);
    if (node.as<ConcatAttrs>() == nullptr || node.inputs.size() != 2) continue;
    const int turned = e.made_by<RopeAttrs>(node.inputs[0]), passed = e.made_by<SliceAttrs>(node.inputs[1]);
    if (turned < 0 || passed < 0 || !e.single_read(node.inputs[0])) continue;
    RopeAttrs a = *e.node(turned).as<RopeAttrs>();
    const std::vector<ValueId> operands = e.node(turned).inputs;
    const int first = e.made_by<SliceAttrs>(operands[0]);
    if (first < 0 || a.rotary_dim != 0) continue;
    const ValueId x = e.node(first).inputs[0];
    const Dims& dims = e.value(x).dims;
    if (e.node(passed).inputs[0] != x || dims != e.value(node.outputs[0]).dims ||
        !e.value(x).bounded_dims.empty() ||
        node.as<ConcatAttrs>()->axis + 1 != static_cast<int64_t>(dims.size()))
      continue;
    a.rotary_dim = e.value(operands[0]).dims.back();
    if (!takes(*e.node(first).as<SliceAttrs>(), dims, 0, a.rotary_dim) ||
        !takes(*e.node(passed).as<SliceAttrs>(), dims, a.rotary_dim, dims.back() - a.rotary_dim))
      continue;
    e.replace(n, a, {x, operands[1], operands[2]});
  }
  return e.commit();
}

}  // namespace sinter::convert
