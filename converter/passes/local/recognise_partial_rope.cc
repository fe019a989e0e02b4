// Rotary embeddings of the first elements of each row, where the others pass (part of recognise-rope).
#include <map>
#include <vector>

#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"

namespace sinter::convert {
namespace {

// Does `part` take one half of each row of `whole`, or every second element? Both are parts of one value.
bool takes_half_of(const SliceAttrs& part, const SliceAttrs& whole) {
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
  e.sweep([&](int n) {
    const auto* part = e.node(n).as<SliceAttrs>();
    if (part == nullptr || part->sizes.size() == 0) return;
    std::vector<int>& earlier = slices[e.node(n).inputs[0]];
    earlier.push_back(n);
    for (const int m : earlier) {
      const SliceAttrs& whole = *e.node(m).as<SliceAttrs>();
      if (m == n || !takes_half_of(*part, whole)) continue;
      SliceAttrs inner = *part;
      for (int i = 0; i < inner.starts.size(); ++i) inner.starts[i] -= whole.starts[i];
      earlier.pop_back();
      e.replace(n, inner, {e.result(m)});
      return;
    }
  });
}

// Concat(Rope(x's first elements), x's other elements) is one Rope.
int join_passed(Graph& graph) {
  Editor e(graph);
  Capture x, cos, sin, first, turned, passed;
  const Pattern rope = op<RopeAttrs>(first(op<SliceAttrs>(x)), cos, sin);
  const Pattern joined = op<ConcatAttrs>(once(turned(rope)), passed(op<SliceAttrs>(x)));
  return e.sweep([&](int n) {
    joined.match(e, e.result(n), [&] {
      RopeAttrs a = *e.node(e.producer(turned)).as<RopeAttrs>();
      const auto slice = [&](ValueId id) { return *e.node(e.producer(id)).as<SliceAttrs>(); };
      const Dims& dims = e.value(x).dims;
      if (a.rotary_dim != 0 || dims != e.value(e.result(n)).dims || !e.value(x).bounded_dims.empty() ||
          e.node(n).as<ConcatAttrs>()->axis + 1 != static_cast<int64_t>(dims.size()))
        return false;
      a.rotary_dim = e.value(first).dims.back();
      if (!takes(slice(first), dims, 0, a.rotary_dim) ||
          !takes(slice(passed), dims, a.rotary_dim, dims.back() - a.rotary_dim))
        return false;
      e.replace(n, a, {x, cos, sin});
      return true;
    });
  });
}

}  // namespace sinter::convert
