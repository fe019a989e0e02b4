// The part of recognise-norms for GroupNorm as torch exports it: a Reshape that puts the groups of channels
// on the channel axis, InstanceNormalization without effect of its scale and bias, a Reshape back, and a Mul
// and an Add by channel.
#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

// Axis 1 moved behind the others, and back.
IntList to_channels_last(size_t rank) {
  IntList perm{0};
  for (size_t i = 2; i < rank; ++i) perm.push(static_cast<int64_t>(i));
  perm.push(1);
  return perm;
}
IntList to_channels_first(size_t rank) {
  IntList perm{0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i) perm.push(static_cast<int64_t>(i));
  return perm;
}

class GroupNormRecogniser {
 public:
  explicit GroupNormRecogniser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) {
      const std::vector<ValueId>& outputs = e_.node(n).outputs;
      if (outputs.empty() || outputs[0] < 0 || e_.value(outputs[0]).dtype != DType::kFloat32) continue;
      if (!reshaped(n)) scale_or_shift(n);
    }
    return e_.commit();
  }

 private:
  // The GroupNorm behind a value that moves its channels to the front and that nothing else reads; -1: none.
  int norm_behind(ValueId y) {
    const int back = e_.made_by<TransposeAttrs>(y);
    if (back < 0 || !e_.single_read(y) || !e_.value(y).bounded_dims.empty() ||
        e_.node(back).as<TransposeAttrs>()->perm != to_channels_first(e_.value(y).dims.size()))
      return -1;
    const ValueId normal = e_.node(back).inputs[0];
    return e_.single_read(normal) ? e_.made_by<GroupNormAttrs>(normal) : -1;
  }

  ValueId by_channel(double number, int64_t channels) {
    const std::vector<float> numbers(static_cast<size_t>(channels), static_cast<float>(number));
    return e_.constant(Constant::of<float>(DType::kFloat32, {channels}, numbers));
  }

  // Channels last, the norm, and channels first again as node n.
  bool emit(int n, ValueId channels_last, const GroupNormAttrs& attrs, ValueId scale, ValueId bias) {
    if (channels_last < 0 || scale < 0 || bias < 0) return false;
    const ValueId y = e_.insert(n, attrs, {channels_last, scale, bias});
    if (y < 0) return false;
    e_.replace(n, TransposeAttrs{to_channels_first(e_.value(y).dims.size())}, {y});
    return true;
  }

  // x [N, C, ...] seen as [N, groups, rest] and normalized, each group by itself, at node n seen as x's dims
  // again: a norm of x with groups of channels.
  bool reshaped(int n) {
    const auto* view = e_.node(n).as<ViewAttrs>();
    if (view == nullptr || view->dtype != -1) return false;
    const int norm = norm_behind(e_.node(n).inputs[0]);
    if (norm < 0) return false;
    const Node node = e_.node(norm);
    const int there = e_.made_by<TransposeAttrs>(node.inputs[0]);
    if (there < 0) return false;
    const int before = e_.made_by<ViewAttrs>(e_.node(there).inputs[0]);
    if (before < 0 || e_.node(before).as<ViewAttrs>()->dtype != -1) return false;
    const ValueId x = e_.node(before).inputs[0];
    const Dims dims = e_.value(x).dims, grouped = e_.value(e_.node(there).inputs[0]).dims;
    const int64_t groups = node.as<GroupNormAttrs>()->groups;
    const auto scale = e_.uniform(node.inputs[1]), bias = e_.uniform(node.inputs[2]);
    if (!scale || !bias || grouped.size() != 3 || dims.size() < 3 ||
        dims != e_.value(e_.node(n).outputs[0]).dims || !e_.value(x).bounded_dims.empty() ||
        e_.node(there).as<TransposeAttrs>()->perm != IntList{0, 2, 1} || grouped[0] != dims[0] ||
        grouped[1] != groups || dims[1] % groups != 0)
      return false;
    const ValueId last = e_.insert(n, TransposeAttrs{to_channels_last(dims.size())}, {x});
    return emit(n, last, *node.as<GroupNormAttrs>(), by_channel(*scale, dims[1]), by_channel(*bias, dims[1]));
  }

  // A value of dims [1, C, 1, ...] or [C, 1, ...] as [C]; kAbsent: it has other dims.
  ValueId channels_of(int n, ValueId id, const Dims& dims) {
    Dims own = e_.value(id).dims, wanted(dims.size(), 1);
    wanted[1] = dims[1];
    if (own.size() > wanted.size() || !e_.value(id).bounded_dims.empty()) return kAbsent;
    own.insert(own.begin(), wanted.size() - own.size(), 1);
    return own == wanted ? e_.insert(n, ViewAttrs{IntList{dims[1]}}, {id}) : kAbsent;
  }

  // A Mul by channel instead of a scale of ones, an Add instead of a bias of zeros.
  void scale_or_shift(int n) {
    const bool mul = unclamped(e_.node(n).as<MulAttrs>()), add = unclamped(e_.node(n).as<AddAttrs>());
    if (!mul && !add) return;
    for (size_t side = 0; side < 2; ++side) {
      const ValueId y = e_.node(n).inputs[side], other = e_.node(n).inputs[1 - side];
      const int norm = norm_behind(y);
      if (norm < 0 || !same_dims(e_.graph(), y, e_.node(n).outputs[0])) continue;
      const Node node = e_.node(norm);
      if (e_.uniform(node.inputs[2]) != 0.0 || (mul && e_.uniform(node.inputs[1]) != 1.0)) continue;
      const ValueId parameter = channels_of(n, other, e_.value(y).dims);
      if (emit(n, node.inputs[0], *node.as<GroupNormAttrs>(), mul ? parameter : node.inputs[1],
               mul ? node.inputs[2] : parameter))
        return;
    }
  }

  Editor e_;
};

int sweep_group_norms(Graph& graph) { return GroupNormRecogniser(graph).run(); }

}  // namespace

int recognise_group_norms(Graph& graph) { return until_stable(graph, sweep_group_norms); }

}  // namespace sinter::convert
