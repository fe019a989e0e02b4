// recognise-rope: x cos + rotate(x) sin, where rotate swaps the halves of the last axis and negates one,
// becomes Rope. Exporters give cosines and sines for both halves; that the halves are alike must follow from
// the graph. Pairs of neighbours: recognise_pair_rope.cc; parts of rows: recognise_partial_rope.cc.
#include <algorithm>
#include <cstring>

#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"

namespace sinter::convert {

namespace {

constexpr int kRopeDepth = 12;

int64_t last_of(const Dims& dims) { return dims.empty() ? 0 : dims.back(); }

// Whether a Slice takes all rows of its operand, and of each row one half.
bool takes_half(const Graph& graph, const Node& slice, bool second) {
  const auto& a = *slice.as<SliceAttrs>();
  const Dims& dims = graph.value(slice.inputs[0]).dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int at = static_cast<int>(i);
    const bool last = i + 1 == dims.size();
    if (a.steps[at] != 1 || a.sizes[at] != (last ? dims[i] / 2 : dims[i]) ||
        a.starts[at] != (last && second ? dims[i] / 2 : 0))
      return false;
  }
  return true;
}

bool halves_alike(const Constant& c) {
  const int64_t length = last_of(c.dims());
  if (length <= 0 || length % 2 != 0 || bit_width(c.dtype()) % 8 != 0) return false;
  const LoadedBytes loaded = c.load();
  const size_t half = static_cast<size_t>(length / 2) * static_cast<size_t>(bit_width(c.dtype()) / 8);
  for (size_t at = 0; at + 2 * half <= loaded.bytes.size(); at += 2 * half)
    if (std::memcmp(loaded.bytes.data() + at, loaded.bytes.data() + at + half, half) != 0) return false;
  return true;
}

// Whether the second half of each row is the first one again. False: not proven.
bool halves_alike(Editor& e, ValueId id, int depth) {
  if (id < 0 || depth == 0) return false;
  const Value& v = e.value(id);
  if (v.constant) return halves_alike(*v.constant);
  const int n = e.producer(id);
  if (n < 0) return false;
  const Node& node = e.node(n);
  const Dims& from = e.value(node.inputs[0]).dims;
  switch (node.op()) {
    case Op::kTrig:
    case Op::kNeg:
    case Op::kCast:
    case Op::kCopy:
      return halves_alike(e, node.inputs[0], depth - 1);
    case Op::kMul:
      for (size_t i = 0; i < 2; ++i)
        if (e.scalar(node.inputs[i])) return halves_alike(e, node.inputs[1 - i], depth - 1);
      return false;
    case Op::kView:
      return node.as<ViewAttrs>()->dtype < 0 && last_of(from) == last_of(v.dims) &&
             halves_alike(e, node.inputs[0], depth - 1);
    case Op::kBroadcast:
      return last_of(from) == last_of(v.dims) && halves_alike(e, node.inputs[0], depth - 1);
    case Op::kTranspose: {
      const auto& perm = node.as<TransposeAttrs>()->perm;
      return perm[perm.size() - 1] + 1 == static_cast<int64_t>(perm.size()) &&
             halves_alike(e, node.inputs[0], depth - 1);
    }
    case Op::kGather:
      return node.as<GatherAttrs>()->axis + 1 < static_cast<int64_t>(from.size()) &&
             halves_alike(e, node.inputs[0], depth - 1);
    case Op::kGatherNd: {
      const int64_t picked = node.as<GatherNdAttrs>()->batch_dims + last_of(e.value(node.inputs[1]).dims);
      return picked < static_cast<int64_t>(from.size()) && halves_alike(e, node.inputs[0], depth - 1);
    }
    case Op::kConcat:
      return node.as<ConcatAttrs>()->axis + 1 == static_cast<int64_t>(v.dims.size()) &&
             node.inputs.size() == 2 && node.inputs[0] == node.inputs[1];
    default:
      return false;
  }
}

// The first half of each row of cosines or sines, inserted before node n.
ValueId first_half(Editor& e, int n, ValueId id) {
  Dims sizes = e.value(id).dims;
  const Dims starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes.back() /= 2;
  return e.insert(n, SliceAttrs{IntList(starts), IntList(steps), IntList(sizes)}, {id});
}

int sweep_rope(Graph& graph) {
  Editor e(graph);
  Capture x, cos, sin;
  const auto half = [&](bool second) {
    return op<SliceAttrs>(x).where(
        [&graph, second](const Node& node) { return takes_half(graph, node, second); });
  };
  const Pattern rotated = op<ConcatAttrs>(op<NegAttrs>(half(true)), half(false)).where([&](const Node& node) {
    const Dims& dims = graph.value(x).dims;
    return node.as<ConcatAttrs>()->axis + 1 == static_cast<int64_t>(dims.size()) && last_of(dims) % 2 == 0;
  });
  const Pattern turned =
      commuted<AddAttrs>(once(commuted<MulAttrs>(x, cos)), once(commuted<MulAttrs>(once(rotated), sin)));
  return e.sweep([&](int n) {
    turned.match(e, e.result(n), [&] {
      const Value &v = e.value(x), &y = e.value(e.result(n));
      if (v.dtype != DType::kFloat32 || v.dims != y.dims || !y.bounded_dims.empty()) return false;
      for (const ValueId id : {cos.id, sin.id})
        if (last_of(e.value(id).dims) != v.dims.back() || !halves_alike(e, id, kRopeDepth)) return false;
      const ValueId half_cos = first_half(e, n, cos), half_sin = first_half(e, n, sin);
      if (half_cos < 0 || half_sin < 0) return false;
      e.replace(n, RopeAttrs{}, {x, half_cos, half_sin});
      return true;
    });
  });
}

}  // namespace

int recognise_rope(Graph& graph) {
  nest_halves(graph);
  int changes = sweep_rope(graph);
  changes += recognise_pair_rope(graph);
  return changes + join_passed(graph);
}

}  // namespace sinter::convert
