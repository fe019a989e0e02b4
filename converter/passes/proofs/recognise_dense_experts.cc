// Mixtures of experts that apply all experts to all tokens (part of recognise-experts):
//
//   y = sum over e of expert_e(x) * weight[e], with weight = Scatter(zeros, chosen, weights of the choices)
//
// The experts are the first axis of all values. Weights of those that a token has not chosen are 0, and what
// these experts compute adds nothing; where one of them computes an infinity or NaN, the model as written
// gives NaN, and the other experts' sum is given here.
#include <algorithm>

#include "converter/passes/passes.h"
#include "converter/passes/proofs/chosen_experts.h"
#include "runtime/core/op_enums.h"

namespace sinter::convert {
namespace {

class DenseRecogniser {
 public:
  explicit DenseRecogniser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) match(n);
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }
  ValueId bare(ValueId id) {
    for (int n; (n = e_.made_by<ViewAttrs>(id)) >= 0 && e_.node(n).as<ViewAttrs>()->dtype < 0;)
      id = e_.node(n).inputs[0];
    return id;
  }

  // Returns the weights [tokens, choices] that are written to the places of a TopK, if `id` is [experts,
  // tokens], in row-major order.
  struct Weights {
    ValueId weights = kAbsent;
    Routes routes;
  };
  std::optional<Weights> weights(ValueId id) {
    const int turned = e_.made_by<TransposeAttrs>(bare(id));
    if (turned < 0 || e_.node(turned).as<TransposeAttrs>()->perm != IntList{1, 0}) return std::nullopt;
    const ValueId rows = bare(e_.node(turned).inputs[0]);
    const int scatter = e_.made_by<ScatterElementsAttrs>(rows);
    if (scatter < 0 || dims(rows).size() != 2 || dims(e_.node(turned).inputs[0]) != dims(rows))
      return std::nullopt;
    const auto& a = *e_.node(scatter).as<ScatterElementsAttrs>();
    const std::vector<ValueId>& in = e_.node(scatter).inputs;
    const auto routes = routes_of(e_, in[1]);
    if (a.axis != 1 || a.reduction != static_cast<int64_t>(ScatterReduction::kNone) ||
        e_.uniform(in[0]) != 0.0 || !routes || dims(in[2]) != Dims{routes->tokens, routes->choices} ||
        dims(rows) != Dims{routes->tokens, routes->experts} || dims(id).empty() ||
        dims(id)[0] != routes->experts || routes->choices >= routes->experts)
      return std::nullopt;
    return Weights{in[2], *routes};
  }

  void match(int n) {
    const auto* reduce = e_.node(n).as<ReduceAttrs>();
    if (reduce == nullptr || reduce->fn != static_cast<int64_t>(ReduceFn::kSum) || reduce->axes != IntList{0})
      return;
    const int product = e_.made_by<MulAttrs>(e_.node(n).inputs[0]);
    if (product < 0 || !unclamped(e_.node(product).as<MulAttrs>()) ||
        e_.value(e_.node(n).outputs[0]).dtype != DType::kFloat32)
      return;
    const Dims all = dims(e_.node(product).outputs[0]);
    for (size_t side = 0; side < 2; ++side) {
      const ValueId value = e_.node(product).inputs[1 - side], weight = e_.node(product).inputs[side];
      const auto w = weights(weight);
      // There is a weight for each row.
      Dims rows = all;
      if (!w || rows.empty() || dims(value) != all) continue;
      rows.back() = 1;
      if (dims(weight) != rows || element_count(rows) != w->routes.experts * w->routes.tokens) continue;
      for (const ValueId id : {value, weight, e_.node(n).outputs[0]})
        if (!e_.value(id).bounded_dims.empty()) return;
      if (write(n, value, *w)) return;
    }
  }

  bool write(int n, ValueId value, const Weights& w) {
    const Routes& r = w.routes;
    ChosenExperts* experts = nullptr;
    // The leaf is all tokens, once for each expert.
    const auto leaf = [&](const ChosenExperts::Values& values) -> ValueId {
      const int made = e_.producer(values[0]);
      if (made < 0) return kAbsent;
      const Node& node = e_.node(made);
      const ValueId x = node.inputs.empty() ? kAbsent : node.inputs[0];
      if (x < 0 || element_count(dims(x)) * r.experts != element_count(dims(values[0])) ||
          element_count(dims(x)) % r.tokens != 0)
        return kAbsent;
      bool repeats = false;
      if (const auto* t = node.as<TileAttrs>()) {
        repeats = t->repeats.size() > 0 && t->repeats[0] == r.experts;
      } else if (node.op() == Op::kBroadcast) {
        const Dims &to = dims(values[0]), &from = dims(x);
        repeats = to[0] == r.experts && (from.size() < to.size() || from[0] == 1);
      }
      return repeats ? experts->repeated(x, element_count(dims(x)) / r.tokens) : kAbsent;
    };
    ChosenExperts of(e_, n, r, true, leaf);
    experts = &of;
    const ValueId rows = of.rows({value}), each = of.view(w.weights, {r.rows(), 1});
    if (rows < 0 || each < 0) return false;
    const ValueId y = of.sum(e_.insert(n, MulAttrs{}, {rows, each}));
    if (y < 0) return false;
    e_.replace(n, ViewAttrs{IntList(dims(e_.node(n).outputs[0])), -1}, {y});
    return true;
  }

  Editor e_;
};

}  // namespace

int recognise_dense_experts(Graph& graph) { return DenseRecogniser(graph).run(); }

}  // namespace sinter::convert
