// fuse-clamp: merges a Clamp into the operation before it, if that can clamp its own result.
#include <algorithm>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

struct ClampFields {
  double* low = nullptr;
  double* high = nullptr;
};

ClampFields clamp_fields(Node& node) {
  ClampFields b;
  std::visit(
      [&](auto& a) {
        if constexpr (requires { a.act_min; }) b = {&a.act_min, &a.act_max};
        if constexpr (requires { a.min, a.max; }) b = {&a.min, &a.max};
      },
      node.attrs);
  return b;
}

}  // namespace

int fuse_clamp(Graph& graph) {
  Editor e(graph);
  return e.sweep([&](int n) {
    const auto* clamp = e.node(n).as<ClampAttrs>();
    if (clamp == nullptr) return;
    const ValueId x = e.node(n).inputs[0];
    const int before = e.producer(x);
    if (before < 0 || !e.single_read(x) || !is_wide_float(e.value(x).dtype)) return;
    const ClampFields b = clamp_fields(e.node(before));
    // The later clamp has the last word: crossed bounds would not compose.
    if (b.low == nullptr || clamp->min > clamp->max || *b.low > *b.high || *b.low > clamp->max ||
        *b.high < clamp->min)
      return;
    *b.low = std::max(*b.low, clamp->min);
    *b.high = std::min(*b.high, clamp->max);
    e.absorb(before, n);
  });
}

}  // namespace sinter::convert
