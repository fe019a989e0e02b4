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

IntList list(const Dims& dims) { return IntList(std::span<const int64_t>(dims)); }

// begins..., ends... of every axis
template <class T>
AttrList<T> both_ends(const Frame& frame, const AttrList<T>& own) {
  const int rank = own.size() / 2;
  AttrList<T> out = frame.list(AttrList<T>(own.span().first(static_cast<size_t>(rank))));
  for (const T& end : frame.list(AttrList<T>(own.span().last(static_cast<size_t>(rank))))) out.push(end);
  return out;
}

// The kept axes are in the same order in both frames.
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
  return Relabelled{ViewAttrs{list(frame.dims(out))}, {true}, true};
}

}  // namespace

std::optional<Relabelled> relabel(const Graph& graph, const Node& node, const Frame& frame) {
  if (!node.bodies.empty() || node.inputs.empty() || node.outputs.empty() || node.inputs[0] < 0)
    return std::nullopt;
  const Dims& in = graph.value(node.inputs[0]).dims;
  const auto rank = static_cast<int>(in.size());
  const size_t operands = node.inputs.size();
  std::vector<bool> first(operands, false);
  first[0] = true;
  const auto moved = [&](int64_t a) { return frame.axis(rank, a); };
  const auto result = [&](OpAttrs attrs) { return Relabelled{std::move(attrs), first, true}; };

  if (is_elementwise(node.op())) {
    if (graph.value(node.outputs[0]).dims.size() < 3) return std::nullopt;
    return Relabelled{node.attrs, std::vector<bool>(operands, true), true};
  }
  if (rank < 3) return std::nullopt;
  if (const auto* a = node.as<ConcatAttrs>())
    return Relabelled{ConcatAttrs{moved(a->axis)}, std::vector<bool>(operands, true), true};
  if (const auto* a = node.as<SliceAttrs>())
    return result(SliceAttrs{frame.list(a->starts), frame.list(a->steps), frame.list(a->sizes)});
  if (const auto* a = node.as<TileAttrs>()) return result(TileAttrs{frame.list(a->repeats)});
  if (const auto* a = node.as<BroadcastAttrs>()) {
    if (a->dims.size() != rank) return std::nullopt;
    return result(BroadcastAttrs{frame.list(a->dims)});
  }
  if (const auto* a = node.as<PadAttrs>()) return result(PadAttrs{both_ends(frame, a->pads), a->mode});
  if (const auto* a = node.as<ResizeAttrs>()) {
    ResizeAttrs r = *a;
    r.sizes = frame.list(a->sizes), r.scales = frame.list(a->scales);
    if (!a->roi.empty()) r.roi = both_ends(frame, a->roi);
    return result(r);
  }
  if (const auto* a = node.as<LutAttrs>()) return result(*a);
  if (const auto* a = node.as<DynamicQuantizeAttrs>()) return result(*a);
  if (const auto* a = node.as<SoftmaxAttrs>()) return result(SoftmaxAttrs{moved(a->axis), a->log});
  if (const auto* a = node.as<CumulateAttrs>())
    return result(CumulateAttrs{a->fn, moved(a->axis), a->exclusive, a->reverse});
  if (const auto* a = node.as<TopKAttrs>())
    return result(TopKAttrs{a->k, moved(a->axis), a->largest, a->sorted});
  if (const auto* a = node.as<ArgReduceAttrs>()) {
    if (a->keepdims == 0 && !order_kept(frame, rank, {a->axis})) return std::nullopt;
    return Relabelled{ArgReduceAttrs{a->fn, moved(a->axis), a->keepdims, a->select_last}, first,
                      a->keepdims != 0};
  }
  if (const auto* a = node.as<ReduceAttrs>()) {
    ReduceAttrs r = *a;
    for (int i = 0; i < r.axes.size(); ++i) r.axes[i] = moved(r.axes[i]);
    std::sort(r.axes.items, r.axes.items + r.axes.count);
    if (a->keepdims == 0 && !order_kept(frame, rank, a->axes)) return std::nullopt;
    return Relabelled{r, first, a->keepdims != 0};
  }
  if (const auto* a = node.as<GatherAttrs>()) {
    if (graph.value(node.inputs[1]).dims.size() != 1) return std::nullopt;
    return result(GatherAttrs{moved(a->axis)});
  }
  if (const auto* a = node.as<GatherElementsAttrs>())
    return Relabelled{GatherElementsAttrs{moved(a->axis)}, std::vector<bool>(operands, true), true};
  if (const auto* a = node.as<QuantizeAttrs>()) {
    if (a->block_size != 0) return std::nullopt;
    QuantizeAttrs q = *a;
    q.axis = moved(a->axis);
    return result(q);
  }
  if (const auto* a = node.as<DequantizeAttrs>()) {
    if (a->block_size != 0) return std::nullopt;
    DequantizeAttrs q = *a;
    q.axis = moved(a->axis);
    return result(q);
  }
  if (const auto* a = node.as<ViewAttrs>())
    return relabel_view(in, graph.value(node.outputs[0]).dims, frame, a->dtype);
  return std::nullopt;
}

namespace {

// Which axis of `coarse` each axis of `fine` is a factor of; nothing if `fine` does not just split axes.
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
  // Axes of `split` in the order that each side has them in the frame.
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
  s.joined = list(frame.dims(out));
  return s;
}

}  // namespace sinter::convert
