// fuse-clamp: merges a Clamp into the operation before it, if that can clamp its own result.
#include <algorithm>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

struct Bounds {
  double* low = nullptr;
  double* high = nullptr;
};

Bounds bounds_of(Node& node) {
  Bounds b;
  std::visit(
      [&](auto& a) {
        if constexpr (requires { a.act_min; }) b = {&a.act_min, &a.act_max};
        if constexpr (requires { a.min, a.max; }) b = {&a.min, &a.max};
      },
      node.attrs);
  return b;
}

bool foldable_type(DType t) { return t == DType::kFloat32 || t == DType::kFloat64; }

}  // namespace

int fuse_clamp(Graph& graph) {
  Editor e(graph);
  for (int n = 0; n < e.size(); ++n) {
    const auto* clamp = e.node(n).as<ClampAttrs>();
    if (clamp == nullptr || e.erased(n)) continue;
    const ValueId x = e.node(n).inputs[0];
    const int before = e.producer(x);
    if (before < 0 || !e.single_read(x) || !foldable_type(e.value(x).dtype)) continue;
    const Bounds b = bounds_of(e.node(before));
    // The later clamp has the last word: crossed bounds would not compose.
    if (b.low == nullptr || clamp->min > clamp->max || *b.low > *b.high || *b.low > clamp->max ||
        *b.high < clamp->min)
      continue;
    *b.low = std::max(*b.low, clamp->min);
    *b.high = std::min(*b.high, clamp->max);
    e.absorb(before, n);
  }
  return e.commit();
}

}  // namespace sinter::convert
