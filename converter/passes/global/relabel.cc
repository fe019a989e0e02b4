#include "converter/passes/global/relabel.h"

#include <algorithm>

#include "converter/ir/op_traits.h"

namespace sinter::convert {

IntList Frame::perm(int rank) const {
  IntList p{0};
  if (to_last) {
    for (int i = 2; i < rank; ++i) p.push(i);
    p.push(1);
  } else {
    p.push(rank - 1);
    for (int i = 1; i + 1 < rank; ++i) p.push(i);
  }
  return p;
}

IntList Frame::inverse(int rank) const { return Frame{!to_last}.perm(rank); }

int64_t Frame::axis(int rank, int64_t a) const {
  const IntList p = perm(rank);
  return std::find(p.begin(), p.end(), a) - p.begin();
}

Dims Frame::dims(const Dims& own) const {
  Dims out;
  for (const int64_t p : perm(static_cast<int>(own.size()))) out.push_back(own[static_cast<size_t>(p)]);
  return out;
}

namespace {

// Returns the begins of every axis, then the ends, in the frame's order.
template <class T>
AttrList<T> both_ends(const Frame& frame, const AttrList<T>& own) {
  const int rank = own.size() / 2;
  AttrList<T> out = frame.list(AttrList<T>(own.span().first(static_cast<size_t>(rank))));
  for (const T& end : frame.list(AttrList<T>(own.span().last(static_cast<size_t>(rank))))) out.push(end);
  return out;
}

// Returns whether the kept axes are in the same order in both frames.
bool order_kept(const Frame& frame, int rank, const IntList& gone) {
  int64_t last = -1;
  for (const int64_t p : frame.perm(rank)) {
    if (std::find(gone.begin(), gone.end(), p) != gone.end()) continue;
    if (p < last) return false;
    last = p;
  }
  return true;
}

std::optional<Relabelled> relabel_view(const Dims& in, const Dims& out, const Frame& frame, int64_t dtype) {
  if (in.size() < 3 || out.size() < 3 || dtype >= 0 || in[0] != out[0]) return std::nullopt;
  const bool channels = frame.to_last ? in[1] == out[1] : in.back() == out.back();
  if (!channels) return std::nullopt;
  return Relabelled{ViewAttrs{IntList(frame.dims(out))}, {true}, true};
}

template <class A, class... Others>
constexpr bool is_any = (std::is_same_v<A, Others> || ...);

// Rewrites attributes for operands of this rank in the frame's order; false: the operation needs its order.
// The map of elements is not asked: it states what attributes mean, and here they are written.
template <class A>
bool reorder(const Frame& frame, int rank, A* a) {
  if constexpr (is_any<A, ConcatAttrs, SoftmaxAttrs, CumulateAttrs, TopKAttrs, GatherAttrs,
                       GatherElementsAttrs>) {
    a->axis = frame.axis(rank, a->axis);
  } else if constexpr (is_any<A, QuantizeAttrs, DequantizeAttrs>) {
    if (a->block_size != 0) return false;
    a->axis = frame.axis(rank, a->axis);
  } else if constexpr (is_any<A, ArgReduceAttrs>) {
    if (a->keepdims == 0 && !order_kept(frame, rank, {a->axis})) return false;
    a->axis = frame.axis(rank, a->axis);
  } else if constexpr (is_any<A, ReduceAttrs>) {
    if (a->keepdims == 0 && !order_kept(frame, rank, a->axes)) return false;
    for (int64_t& axis : std::span(a->axes.items, static_cast<size_t>(a->axes.count)))
      axis = frame.axis(rank, axis);
    std::sort(a->axes.items, a->axes.items + a->axes.count);
  } else if constexpr (is_any<A, SliceAttrs>) {
    *a = {frame.list(a->starts), frame.list(a->steps), frame.list(a->sizes)};
  } else if constexpr (is_any<A, TileAttrs>) {
    a->repeats = frame.list(a->repeats);
  } else if constexpr (is_any<A, BroadcastAttrs>) {
    if (a->dims.size() != rank) return false;
    a->dims = frame.list(a->dims);
  } else if constexpr (is_any<A, PadAttrs>) {
    a->pads = both_ends(frame, a->pads);
  } else if constexpr (is_any<A, ResizeAttrs>) {
    a->sizes = frame.list(a->sizes), a->scales = frame.list(a->scales);
    if (!a->roi.empty()) a->roi = both_ends(frame, a->roi);
  } else {
    return is_any<A, LutAttrs, DynamicQuantizeAttrs>;
  }
  return true;
}

}  // namespace

std::optional<Relabelled> relabel(const Graph& graph, const Node& node, const Frame& frame) {
  if (!node.bodies.empty() || node.inputs.empty() || node.outputs.empty() || node.inputs[0] < 0)
    return std::nullopt;
  const Dims& in = graph.value(node.inputs[0]).dims;
  const auto rank = static_cast<int>(in.size());
  const bool all = is_elementwise(node.op()) || node.op() == Op::kConcat || node.op() == Op::kGatherElements;
  std::vector<bool> tied(node.inputs.size(), all);
  tied[0] = true;
  if (is_elementwise(node.op())) {
    if (graph.value(node.outputs[0]).dims.size() < 3) return std::nullopt;
    return Relabelled{node.attrs, tied, true};
  }
  if (rank < 3) return std::nullopt;
  if (const auto* view = node.as<ViewAttrs>())
    return relabel_view(in, graph.value(node.outputs[0]).dims, frame, view->dtype);
  if (node.op() == Op::kGather && graph.value(node.inputs[1]).dims.size() != 1) return std::nullopt;
  return std::visit(
      [&](auto a) -> std::optional<Relabelled> {
        if (!reorder(frame, rank, &a)) return std::nullopt;
        bool keeps_rank = true;
        if constexpr (requires { a.keepdims; }) keeps_rank = a.keepdims != 0;
        return Relabelled{a, tied, keeps_rank};
      },
      node.attrs);
}

namespace {

// Returns the axis of `coarse` that each axis of `fine` is a factor of; nothing if `fine` does not just split
// axes.
std::optional<std::vector<int>> groups(const Dims& coarse, const Dims& fine) {
  std::vector<int> group;
  size_t at = 0;
  for (size_t c = 0; c < coarse.size(); ++c) {
    int64_t product = 1;
    const size_t before = at;
    while (at < fine.size() && (product != coarse[c] || at == before)) {
      product *= fine[at++];
      group.push_back(static_cast<int>(c));
      if (product == 0 || product > coarse[c]) return std::nullopt;
    }
    if (product != coarse[c] || at == before) return std::nullopt;
  }
  for (; at < fine.size(); ++at) {
    if (fine[at] != 1) return std::nullopt;
    group.push_back(static_cast<int>(coarse.size()) - 1);
  }
  return group;
}

}  // namespace

std::optional<Shuffle> relabel_shuffle(const Dims& in, const Dims& split, const IntList& perm,
                                       const Dims& out, const Frame& frame) {
  if (in.size() < 3 || out.size() < 3) return std::nullopt;
  Dims transposed;
  for (const int64_t p : perm) transposed.push_back(split[static_cast<size_t>(p)]);
  const auto in_group = groups(in, split), out_group = groups(out, transposed);
  if (!in_group || !out_group) return std::nullopt;
  const int axes = perm.size();
  // These are the axes of `split` in the order that each side has them in the frame.
  std::vector<int> before, after;
  for (const int64_t g : frame.perm(static_cast<int>(in.size())))
    for (int i = 0; i < axes; ++i)
      if ((*in_group)[static_cast<size_t>(i)] == g) before.push_back(i);
  for (const int64_t g : frame.perm(static_cast<int>(out.size())))
    for (int i = 0; i < axes; ++i)
      if ((*out_group)[static_cast<size_t>(i)] == g) after.push_back(static_cast<int>(perm[i]));
  Shuffle s;
  for (const int i : before) s.split.push(split[static_cast<size_t>(i)]);
  for (const int i : after) s.perm.push(std::find(before.begin(), before.end(), i) - before.begin());
  s.joined = IntList(frame.dims(out));
  return s;
}

}  // namespace sinter::convert
