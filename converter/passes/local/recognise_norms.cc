// recognise-norms: layer and root-mean-square normalizations written out in elementary operations.
//
// First the quotient becomes a normalization with a scale of ones; a Mul behind it then replaces the scale,
// an Add gives the bias.
#include <algorithm>

#include "converter/passes/passes.h"
#include "converter/passes/pattern.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

namespace {

// The first axis of a mean over the last axes, which it keeps; -1: the node is something else.
int64_t mean_axis(const Graph& graph, const Node& node) {
  const auto* a = node.as<ReduceAttrs>();
  if (a == nullptr || a->fn != static_cast<int64_t>(ReduceFn::kMean) || a->keepdims == 0) return -1;
  std::vector<int64_t> axes(a->axes.begin(), a->axes.end());
  std::sort(axes.begin(), axes.end());
  const auto rank = static_cast<int64_t>(graph.value(node.inputs[0]).dims.size());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return -1;
  return axes.empty() ? -1 : axes[0];
}

// A value as [dims from axis on]; kAbsent: it has other dims.
ValueId as_tail(Editor& e, int n, ValueId id, const Dims& dims, int64_t axis) {
  const Dims tail(dims.begin() + axis, dims.end());
  Dims own = e.value(id).dims;
  while (own.size() > tail.size() && own.front() == 1) own.erase(own.begin());
  if (own != tail || !e.value(id).bounded_dims.empty()) return kAbsent;
  return own == e.value(id).dims ? id : e.insert(n, ViewAttrs{IntList(tail)}, {id});
}

int sweep_norms(Graph& graph) {
  Editor e(graph);
  Capture d, x, y, scale, parameter;
  double epsilon = 0;
  int64_t axis = -1, centre = -1;
  const auto mean = [&graph](const Pattern& of, int64_t* first) {
    return op<ReduceAttrs>(of).where(
        [&graph, first](const Node& node) { return (*first = mean_axis(graph, node)) >= 0; });
  };
  // d / sqrt(mean(d^2) + epsilon). Exporters omit an epsilon that they take for zero.
  const Pattern variance = mean(any_of(op<MulAttrs>(d, d), op<PowAttrs>(d, 2.0)), &axis);
  const Pattern small = number([](double v) { return v >= 0; }, &epsilon);
  const Pattern radicand = any_of(variance, commuted<AddAttrs>(small, variance));
  const Pattern root = any_of(op<SqrtAttrs>(radicand), op<PowAttrs>(radicand, 0.5));
  const Pattern inverse =
      any_of(op<RsqrtAttrs>(radicand), op<PowAttrs>(radicand, -0.5), op<DivAttrs>(1.0, root));
  const Pattern quotient = any_of(op<DivAttrs>(d, root), commuted<MulAttrs>(d, inverse));
  const Pattern centred = op<SubAttrs>(x, mean(x, &centre));
  // A scale of ones, or no bias, that the operation behind gives.
  const Pattern bare = any_of(op<LayerNormAttrs>(x, 1.0), op<RmsNormAttrs>(x, 1.0));
  const Pattern scaled = commuted<MulAttrs>(y(once(bare)), parameter);
  const Pattern shifted = commuted<AddAttrs>(y(once(op<LayerNormAttrs>(x, scale))), parameter);

  return e.sweep([&](int n) {
    const ValueId result = e.result(n);
    if (result < 0 || !is_wide_float(e.value(result).dtype)) return;
    const auto normalize = [&] {
      const Dims dims = e.value(d).dims, tail(dims.begin() + axis, dims.end());
      const std::vector<double> ones(static_cast<size_t>(element_count(tail)), 1.0);
      if (dims != e.value(result).dims || ones.empty()) return false;
      const ValueId unscaled = e.constant(real_constant(e.value(d).dtype, tail, ones));
      const auto layer = [&] {
        return centre == axis && (e.replace(n, LayerNormAttrs{axis, epsilon}, {x, unscaled}), true);
      };
      if (!centred.match(e, d, layer)) e.replace(n, RmsNormAttrs{axis, epsilon}, {d, unscaled});
      return true;
    };
    const auto complete = [&] {
      const Node norm = e.node(e.producer(y));
      const auto* layer = norm.as<LayerNormAttrs>();
      const Dims& dims = e.value(y).dims;
      if (dims != e.value(result).dims) return false;
      const ValueId tail =
          as_tail(e, n, parameter, dims, layer != nullptr ? layer->axis : norm.as<RmsNormAttrs>()->axis);
      if (tail < 0) return false;
      if (scale < 0)
        e.replace(n, norm.attrs, {x, tail});
      else
        e.replace(n, norm.attrs, {x, scale, tail});
      return true;
    };
    if (!quotient.match(e, result, normalize) && !scaled.match(e, result, complete))
      shifted.match(e, result, complete);
  });
}

}  // namespace

int recognise_norms(Graph& graph) { return sweep_norms(graph) + recognise_group_norms(graph); }

}  // namespace sinter::convert
