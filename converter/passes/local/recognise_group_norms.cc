// The part of recognise-norms for GroupNorm as torch exports it: a Reshape that puts the groups of channels
// on the channel axis, InstanceNormalization without effect of its scale and bias, a Reshape back, and a Mul
// and an Add by channel.
#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"

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

bool keeps_type(const Node& node) { return node.as<ViewAttrs>()->dtype == -1; }

// A value of dims [1, C, 1, ...] or [C, 1, ...] as [C]; kAbsent: it has other dims.
ValueId channels_of(Editor& e, int n, ValueId id, const Dims& dims) {
  Dims own = e.value(id).dims, wanted(dims.size(), 1);
  wanted[1] = dims[1];
  if (own.size() > wanted.size() || !e.value(id).bounded_dims.empty()) return kAbsent;
  own.insert(own.begin(), wanted.size() - own.size(), 1);
  return own == wanted ? e.insert(n, ViewAttrs{IntList{dims[1]}}, {id}) : kAbsent;
}

int sweep_group_norms(Graph& graph) {
  Editor e(graph);
  Capture x, moved, normal, y, scale, bias, parameter;
  double factor = 0, shift = 0;
  const auto any = [](double) { return true; };
  // A norm that moves its channels to the front afterwards.
  const auto norm = [&](const Pattern& in, const Pattern& by, const Pattern& plus) {
    const Pattern back = op<TransposeAttrs>(once(normal(op<GroupNormAttrs>(in, by, plus))));
    return once(y(back.where([&](const Node& node) {
      const Value& out = e.value(node.outputs[0]);
      return out.bounded_dims.empty() &&
             node.as<TransposeAttrs>()->perm == to_channels_first(out.dims.size());
    })));
  };
  const Pattern there =
      op<TransposeAttrs>(moved(op<ViewAttrs>(x).where(keeps_type))).where([](const Node& node) {
        return node.as<TransposeAttrs>()->perm == IntList{0, 2, 1};
      });
  const Pattern grouped =
      op<ViewAttrs>(norm(there, number(any, &factor), number(any, &shift))).where(keeps_type);
  const Pattern scaled = commuted<MulAttrs>(norm(x, scale(1.0), bias(0.0)), parameter);
  const Pattern shifted = commuted<AddAttrs>(norm(x, scale, bias(0.0)), parameter);

  return e.sweep([&](int n) {
    const ValueId result = e.result(n);
    if (result < 0 || e.value(result).dtype != DType::kFloat32) return;
    // Channels last, the norm, and channels first again as node n.
    const auto emit = [&](ValueId channels_last, ValueId by, ValueId plus) {
      if (channels_last < 0 || by < 0 || plus < 0) return false;
      const OpAttrs attrs = e.node(e.producer(normal)).attrs;
      const ValueId made = e.insert(n, attrs, {channels_last, by, plus});
      if (made < 0) return false;
      e.replace(n, TransposeAttrs{to_channels_first(e.value(made).dims.size())}, {made});
      return true;
    };
    // x [N, C, ...] seen as [N, groups, rest] and normalized, each group by itself, and seen as x's dims
    // again: a norm of x with groups of channels.
    const auto by_groups = [&] {
      const Dims dims = e.value(x).dims, groups = e.value(moved).dims;
      if (groups.size() != 3 || dims.size() < 3 || dims != e.value(result).dims ||
          !e.value(x).bounded_dims.empty() || groups[0] != dims[0] ||
          groups[1] != e.node(e.producer(normal)).as<GroupNormAttrs>()->groups || dims[1] % groups[1] != 0)
        return false;
      const auto channels = [&](double v) {
        const std::vector<double> numbers(static_cast<size_t>(dims[1]), v);
        return e.constant(real_constant(DType::kFloat32, {dims[1]}, numbers));
      };
      const ValueId last = e.insert(n, TransposeAttrs{to_channels_last(dims.size())}, {x});
      return emit(last, channels(factor), channels(shift));
    };
    // A Mul by channel instead of a scale of ones, an Add instead of a bias of zeros.
    const auto complete = [&](const ValueId& completed) {
      const Dims& dims = e.value(y).dims;
      if (dims != e.value(result).dims) return false;
      const ValueId now = channels_of(e, n, parameter, dims);
      return emit(x, &completed == &scale.id ? now : scale, &completed == &bias.id ? now : bias);
    };
    if (!grouped.match(e, result, by_groups) && !scaled.match(e, result, [&] { return complete(scale.id); }))
      shifted.match(e, result, [&] { return complete(bias.id); });
  });
}

}  // namespace

int recognise_group_norms(Graph& graph) { return until_stable(graph, sweep_group_norms); }

}  // namespace sinter::convert
