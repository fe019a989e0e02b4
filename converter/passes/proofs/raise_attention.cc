// Attention over batches of heads, [B * H, M, N], becomes one over [B, H, M, N], where a View gives its
// softmax these axes (part of recognise-attention): torch.bmm and torch.baddbmm take three axes.
#include <algorithm>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

class Raiser {
 public:
  explicit Raiser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n) {
      if (e_.node(n).op() == Op::kView)
        scores(n);
      else if (e_.node(n).op() == Op::kMatMul)
        product(n);
    }
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }
  static bool splits_first(const Dims& three, const Dims& four) {
    return three.size() == 3 && four.size() == 4 && four[0] * four[1] == three[0] && four[2] == three[1] &&
           four[3] == three[2];
  }
  bool is_followed(const Node& node) const {
    return unclamped(node.as<AddAttrs>()) || unclamped(node.as<MulAttrs>()) ||
           unclamped(node.as<DivAttrs>()) || node.op() == Op::kWhere;
  }

  // View(scores), whose scores come from a product.
  void scores(int n) {
    const ValueId from = e_.node(n).inputs[0], to = e_.node(n).outputs[0];
    if (e_.node(n).as<ViewAttrs>()->dtype >= 0 || !splits_first(dims(from), dims(to)) ||
        e_.graph().is_output(to) || !e_.value(from).bounded_dims.empty() ||
        !e_.value(to).bounded_dims.empty() || !leads_to_product(from, kSteps) || !feeds_softmax(to))
      return;
    heads_ = {dims(to)[0], dims(to)[1]};
    const ValueId raised = lifted(n, from, kSteps);
    if (raised >= 0) e_.bypass(n, raised);
  }
  bool leads_to_product(ValueId id, int steps) {
    const int n = e_.producer(id);
    if (n < 0 || steps == 0 || !e_.single_read(id)) return false;
    if (e_.node(n).op() == Op::kMatMul) return true;
    if (!is_followed(e_.node(n))) return false;
    for (const ValueId in : e_.node(n).inputs)
      if (dims(in) == dims(id) && leads_to_product(in, steps - 1)) return true;
    return false;
  }
  bool feeds_softmax(ValueId id) {
    for (int n = 0, left = kSteps; n < e_.size() && left > 0; ++n) {
      const auto& in = e_.node(n).inputs;
      if (std::find(in.begin(), in.end(), id) == in.end()) continue;
      if (const auto* s = e_.node(n).as<SoftmaxAttrs>()) return s->axis == 3;
      if (!is_followed(e_.node(n)) || !e_.single_read(id)) return false;
      id = e_.node(n).outputs[0], --left;
    }
    return false;
  }

  // The product of weights that are View(softmax).
  void product(int n) {
    const MatMulAttrs a = *e_.node(n).as<MatMulAttrs>();
    const ValueId p = e_.node(n).inputs[0], v = e_.node(n).inputs[1];
    const Dims three = dims(e_.node(n).outputs[0]);
    if (three.size() != 3 || a.transpose_a != 0 || dims(p).size() != 3 || dims(v).size() != 3 ||
        dims(v)[0] != dims(p)[0])
      return;
    ValueId id = p;
    for (int steps = 0, made; steps < kSteps && (made = e_.producer(id)) >= 0 && is_followed(e_.node(made));
         ++steps)
      id = e_.node(made).inputs[e_.node(made).op() == Op::kWhere ? 1 : 0];
    const int view = e_.made_by<ViewAttrs>(id);
    const int softmax = view < 0 ? -1 : e_.made_by<SoftmaxAttrs>(e_.node(view).inputs[0]);
    if (softmax < 0 || !splits_first(dims(p), dims(e_.node(view).inputs[0]))) return;
    for (const ValueId each : {p, v, e_.node(n).outputs[0]})
      if (!e_.value(each).bounded_dims.empty()) return;
    const Dims& four = dims(e_.node(view).inputs[0]);
    heads_ = {four[0], four[1]};
    const ValueId weights = lifted(n, p, kSteps), values = lifted(n, v, kSteps);
    if (weights < 0 || values < 0) return;
    const ValueId y = e_.insert(n, a, {weights, values});
    if (y >= 0) e_.replace(n, ViewAttrs{IntList(std::span<const int64_t>(three)), -1}, {y});
  }

  ValueId view(int n, ValueId id, const Dims& to) {
    return e_.insert(n, ViewAttrs{IntList(std::span<const int64_t>(to)), -1}, {id});
  }
  // [B * H, X, Y] as [B, H, X, Y], before node n.
  ValueId lifted(int n, ValueId id, int steps) {
    const Dims d = dims(id), to{heads_[0], heads_[1], d[1], d[2]};
    const int made = e_.producer(id);
    if (made < 0 || steps == 0 || !e_.value(id).bounded_dims.empty()) return view(n, id, to);
    const Node node = e_.node(made);
    if (node.op() == Op::kView && node.as<ViewAttrs>()->dtype < 0 && dims(node.inputs[0]) == to)
      return node.inputs[0];
    if (node.op() == Op::kMatMul) {
      for (const ValueId in : node.inputs)
        if (dims(in).size() != 3 || dims(in)[0] != d[0]) return view(n, id, to);
    } else if (!is_followed(node)) {
      return view(n, id, to);
    }
    std::vector<ValueId> operands;
    for (const ValueId in : node.inputs) {
      const Dims& own = dims(in);
      if (own.size() == 3 && own[0] == d[0])
        operands.push_back(own[0] == 1 && !(own == d) ? view(n, in, {1, 1, own[1], own[2]})
                                                      : lifted(n, in, steps - 1));
      else if (own.size() == 3)
        operands.push_back(view(n, in, {1, 1, own[1], own[2]}));
      else
        operands.push_back(in);
      if (operands.back() < 0) return kAbsent;
    }
    return e_.insert(n, node.attrs, operands);
  }

  static constexpr int kSteps = 8;
  Editor e_;
  Dims heads_;
};

}  // namespace

int raise_attention(Graph& graph) { return Raiser(graph).run(); }

}  // namespace sinter::convert
