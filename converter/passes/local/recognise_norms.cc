// recognise-norms: layer and root-mean-square normalizations written out in elementary operations.
//
// First the quotient becomes a normalization with a scale of ones; a Mul behind it then replaces the scale,
// an Add gives the bias.
#include <algorithm>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {

namespace {

class NormRecogniser {
 public:
  explicit NormRecogniser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) {
      const std::vector<ValueId>& outputs = e_.node(n).outputs;
      if (outputs.empty() || outputs[0] < 0) continue;
      const DType t = e_.value(outputs[0]).dtype;
      if (t != DType::kFloat32 && t != DType::kFloat64) continue;
      if (!quotient(n)) scale_or_shift(n);
    }
    return e_.commit();
  }

 private:
  // The mean over axes first..rank-1, kept: its operand and first axis.
  struct Mean {
    ValueId of = kAbsent;
    int64_t axis = 0;
  };
  std::optional<Mean> mean(ValueId id) {
    const int n = e_.made_by<ReduceAttrs>(id);
    if (n < 0) return std::nullopt;
    const ReduceAttrs& a = *e_.node(n).as<ReduceAttrs>();
    const ValueId x = e_.node(n).inputs[0];
    const auto rank = static_cast<int64_t>(e_.value(x).dims.size());
    if (a.fn != static_cast<int64_t>(ReduceFn::kMean) || a.keepdims == 0 || a.axes.empty())
      return std::nullopt;
    std::vector<int64_t> axes(a.axes.begin(), a.axes.end());
    std::sort(axes.begin(), axes.end());
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return std::nullopt;
    return Mean{x, axes[0]};
  }
  // The operand of a square.
  std::optional<ValueId> square(ValueId id) {
    const int n = e_.producer(id);
    if (n < 0) return std::nullopt;
    const Node& node = e_.node(n);
    if (unclamped(node.as<MulAttrs>()) && node.inputs[0] == node.inputs[1]) return node.inputs[0];
    if (node.as<PowAttrs>() != nullptr && e_.uniform(node.inputs[1]) == 2.0) return node.inputs[0];
    return std::nullopt;
  }

  std::optional<ValueId> root(ValueId id) {
    if (const int n = e_.made_by<SqrtAttrs>(id); n >= 0) return e_.node(n).inputs[0];
    if (const int n = e_.made_by<PowAttrs>(id); n >= 0 && e_.uniform(e_.node(n).inputs[1]) == 0.5)
      return e_.node(n).inputs[0];
    return std::nullopt;
  }
  std::optional<ValueId> inverse_root(ValueId id) {
    const int n = e_.producer(id);
    if (n < 0) return std::nullopt;
    const Node& node = e_.node(n);
    if (node.as<RsqrtAttrs>() != nullptr) return node.inputs[0];
    if (node.as<PowAttrs>() != nullptr && e_.uniform(node.inputs[1]) == -0.5) return node.inputs[0];
    if (unclamped(node.as<DivAttrs>()) && e_.uniform(node.inputs[0]) == 1.0) return root(node.inputs[1]);
    return std::nullopt;
  }

  // d divided by (or multiplied by one over) sqrt(mean(d^2) + epsilon). Exporters omit an epsilon that they
  // take for zero.
  bool quotient(int n) {
    const Node& node = e_.node(n);
    if (unclamped(node.as<DivAttrs>())) {
      const auto r = root(node.inputs[1]);
      return r && normalization(n, node.inputs[0], *r);
    }
    if (!unclamped(node.as<MulAttrs>())) return false;
    for (size_t side = 0; side < 2; ++side) {
      const auto r = inverse_root(node.inputs[1 - side]);
      if (r && normalization(n, node.inputs[side], *r)) return true;
    }
    return false;
  }

  bool normalization(int n, ValueId d, ValueId radicand) {
    if (!same_dims(e_.graph(), d, e_.node(n).outputs[0])) return false;
    if (const auto axis = mean_square(radicand, d)) return emit(n, d, *axis, 0);
    const int sum = e_.made_by<AddAttrs>(radicand);
    if (sum < 0 || !unclamped(e_.node(sum).as<AddAttrs>())) return false;
    for (size_t side = 0; side < 2; ++side) {
      const auto epsilon = e_.uniform(e_.node(sum).inputs[side]);
      const auto axis = mean_square(e_.node(sum).inputs[1 - side], d);
      if (epsilon && *epsilon >= 0 && axis) return emit(n, d, *axis, *epsilon);
    }
    return false;
  }

  // The first axis of mean(d^2).
  std::optional<int64_t> mean_square(ValueId id, ValueId d) {
    const auto variance = mean(id);
    const auto squared = variance ? square(variance->of) : std::nullopt;
    return squared && *squared == d ? std::optional(variance->axis) : std::nullopt;
  }

  bool emit(int n, ValueId d, int64_t axis, double epsilon) {
    const Dims& dims = e_.value(d).dims;
    const Dims tail(dims.begin() + axis, dims.end());
    const auto count = static_cast<size_t>(element_count(tail));
    const DType t = e_.value(d).dtype;
    if (count == 0) return false;
    const ValueId ones =
        e_.constant(t == DType::kFloat64 ? Constant::of<double>(t, tail, std::vector<double>(count, 1.0))
                                         : Constant::of<float>(t, tail, std::vector<float>(count, 1.0f)));
    const int sub = e_.made_by<SubAttrs>(d);
    if (sub >= 0 && unclamped(e_.node(sub).as<SubAttrs>())) {
      const auto centre = mean(e_.node(sub).inputs[1]);
      const ValueId x = e_.node(sub).inputs[0];
      if (centre && centre->of == x && centre->axis == axis) {
        e_.replace(n, LayerNormAttrs{axis, epsilon}, {x, ones});
        return true;
      }
    }
    e_.replace(n, RmsNormAttrs{axis, epsilon}, {d, ones});
    return true;
  }

  // A value as [dims from axis on], or nothing.
  std::optional<ValueId> as_tail(int n, ValueId id, const Dims& dims, int64_t axis) {
    const Dims tail(dims.begin() + axis, dims.end());
    Dims own = e_.value(id).dims;
    while (own.size() > tail.size() && own.front() == 1) own.erase(own.begin());
    if (own != tail || !e_.value(id).bounded_dims.empty()) return std::nullopt;
    if (own == e_.value(id).dims) return id;
    const ValueId view = e_.insert(n, ViewAttrs{IntList(std::span<const int64_t>(tail))}, {id});
    return view < 0 ? std::nullopt : std::optional(view);
  }

  void scale_or_shift(int n) {
    const bool mul = unclamped(e_.node(n).as<MulAttrs>()), add = unclamped(e_.node(n).as<AddAttrs>());
    if (!mul && !add) return;
    for (size_t side = 0; side < 2; ++side) {
      const ValueId y = e_.node(n).inputs[side], other = e_.node(n).inputs[1 - side];
      const int norm = e_.producer(y);
      if (norm < 0 || !e_.single_read(y) || !same_dims(e_.graph(), y, e_.node(n).outputs[0])) continue;
      const Node& node = e_.node(norm);
      const auto* layer = node.as<LayerNormAttrs>();
      const auto* rms = node.as<RmsNormAttrs>();
      if ((layer == nullptr && rms == nullptr) || node.outputs.size() != 1) continue;
      const bool bare = node.inputs.size() == 2 || node.inputs[2] < 0;
      if (!bare || (add && layer == nullptr)) continue;
      if (mul && e_.uniform(node.inputs[1]) != 1.0) continue;
      const int64_t axis = layer != nullptr ? layer->axis : rms->axis;
      const auto parameter = as_tail(n, other, e_.value(y).dims, axis);
      if (!parameter) continue;
      std::vector<ValueId> inputs{node.inputs[0], mul ? *parameter : node.inputs[1]};
      if (add) inputs.push_back(*parameter);
      e_.replace(n, node.attrs, inputs);
      return;
    }
  }

  Editor e_;
};

}  // namespace

int recognise_norms(Graph& graph) { return NormRecogniser(graph).run() + recognise_group_norms(graph); }

}  // namespace sinter::convert
