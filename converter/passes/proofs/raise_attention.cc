// Part of recognise-attention: attention over batches of heads, [B * H, M, N], becomes one over [B, H, M, N],
// because torch.bmm and torch.baddbmm take three axes. B and H are those of a View of the scores and of the
// weights; or else, where the values are a View of [1, H, N, D], B is 1.
#include <algorithm>
#include <map>
#include <set>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

class Raiser {
 public:
  explicit Raiser(Graph& graph) : e_(graph) {}

  int run() {
    for (int n = 0; n < e_.size(); ++n)
      if (const auto* a = e_.node(n).as<SoftmaxAttrs>(); a != nullptr && a->axis == 2 && a->log == 0) mark(n);
    for (int n = 0; n < e_.size(); ++n) {
      if (chosen_.contains(n))
        add_axis(n);
      else if (is_plain_view(n))
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
  // Returns whether an operation may be between scores, softmax and weights.
  static bool is_followed(const Node& node) {
    return unclamped(node.as<AddAttrs>()) || unclamped(node.as<MulAttrs>()) ||
           unclamped(node.as<DivAttrs>()) || node.op() == Op::kWhere;
  }
  bool is_plain_view(int n) {
    const auto* view = e_.node(n).as<ViewAttrs>();
    return view != nullptr && view->dtype < 0;
  }
  ValueId view(int n, ValueId id, const Dims& to) { return e_.insert(n, ViewAttrs{IntList(to), -1}, {id}); }

  // Raises the scores of View(scores), which come from a product.
  void scores(int n) {
    const ValueId from = e_.node(n).inputs[0], to = e_.node(n).outputs[0];
    if (const auto at = added_.find(from); at != added_.end() && same_dims(e_.graph(), at->second, to))
      return e_.bypass(n, at->second);
    if (!splits_first(dims(from), dims(to)) || e_.graph().is_output(to) ||
        !e_.value(from).bounded_dims.empty() || !e_.value(to).bounded_dims.empty() ||
        !leads_to_product(from, kSteps) || !feeds_softmax(to))
      return;
    heads_ = {dims(to)[0], dims(to)[1]};
    const ValueId four = raised(n, from, kSteps);
    if (four >= 0) e_.bypass(n, four);
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

  // Raises the product of weights that are View(softmax).
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
    const ValueId weights = raised(n, p, kSteps), values = raised(n, v, kSteps);
    if (weights < 0 || values < 0) return;
    const ValueId y = e_.insert(n, a, {weights, values});
    if (y >= 0) e_.replace(n, ViewAttrs{IntList(three), -1}, {y});
  }

  // Returns [B * H, X, Y] as [B, H, X, Y], before node n.
  ValueId raised(int n, ValueId id, int steps) {
    const Dims d = dims(id), to{heads_[0], heads_[1], d[1], d[2]};
    const int made = e_.producer(id);
    if (made < 0 || steps == 0 || !e_.value(id).bounded_dims.empty()) return view(n, id, to);
    const Node node = e_.node(made);
    if (is_plain_view(made) && dims(node.inputs[0]) == to) return node.inputs[0];
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
                                                      : raised(n, in, steps - 1));
      else if (own.size() == 3)
        operands.push_back(view(n, in, {1, 1, own[1], own[2]}));
      else
        operands.push_back(in);
      if (operands.back() < 0) return kAbsent;
    }
    return e_.insert(n, node.attrs, operands);
  }

  // ---- Heads that are the first of three axes
  bool fits(ValueId id) const {
    return dims(id).size() == 3 && e_.value(id).dtype == DType::kFloat32 && e_.value(id).bounded_dims.empty();
  }
  bool is_product(int n) {
    return n >= 0 && e_.node(n).as<MatMulAttrs>() != nullptr && fits(e_.node(n).inputs[0]) &&
           fits(e_.node(n).inputs[1]) && fits(e_.node(n).outputs[0]);
  }
  // Returns whether a value is a view of [1, heads, N, D].
  bool has_heads(ValueId id) {
    const int view = e_.made_by<ViewAttrs>(id);
    return view >= 0 && is_plain_view(view) && dims(e_.node(view).inputs[0]) == with_one(dims(id));
  }

  // Finds the product that `id` comes from and the nodes of rank 3 between; false: it comes from something
  // else.
  bool follow_up(ValueId id, std::set<int>* found) {
    for (int steps = 0; steps < kSteps; ++steps) {
      const int n = e_.producer(id);
      if (n < 0) return false;
      if (is_product(n)) return found->insert(n), true;
      const Node& node = e_.node(n);
      if (is_plain_view(n)) {
        id = node.inputs[0];
        continue;
      }
      if (!is_followed(e_.node(n)) || e_.value(id).dtype != DType::kFloat32) return false;
      if (dims(id).size() == 3) found->insert(n);
      const auto next = std::find_if(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
        return e_.producer(in) >= 0 && e_.value(in).dtype == DType::kFloat32 && same_dims(e_.graph(), in, id);
      });
      if (next == node.inputs.end()) return false;
      id = *next;
    }
    return false;
  }

  void mark(int softmax) {
    const ValueId weights = e_.node(softmax).outputs[0];
    if (!fits(weights)) return;
    std::set<int> found{softmax};
    if (!follow_up(e_.node(softmax).inputs[0], &found)) return;
    ValueId id = weights;
    for (int steps = 0; steps < kSteps; ++steps) {
      const int n = e_.reader(id);
      if (n < 0) return;
      if (is_product(n)) {
        if (e_.node(n).inputs[0] != id) return;
        found.insert(n);
        // The padding of the values may be filled.
        ValueId values = e_.node(n).inputs[1];
        if (const int fill = e_.made_by<WhereAttrs>(values); fill >= 0)
          found.insert(fill), values = e_.node(fill).inputs[1];
        if (has_heads(values)) chosen_.insert(found.begin(), found.end());
        return;
      }
      if (e_.node(n).as<WhereAttrs>() == nullptr || !fits(e_.node(n).outputs[0])) return;
      found.insert(n);
      id = e_.node(n).outputs[0];
    }
  }

  static Dims with_one(Dims d) {
    d.insert(d.begin(), 1);
    return d;
  }
  // Returns [1, ..] of an operand of rank 3, inserted before node n.
  ValueId with_axis(int n, ValueId id) {
    if (dims(id).size() != 3) return id;
    if (const auto at = added_.find(id); at != added_.end()) return at->second;
    const Dims more = with_one(dims(id));
    const int made = e_.producer(id);
    const ValueId from = made >= 0 && is_plain_view(made) ? e_.node(made).inputs[0] : id;
    return dims(from) == more ? from : view(n, from, more);
  }
  void add_axis(int n) {
    OpAttrs attrs = e_.node(n).attrs;
    if (auto* softmax = std::get_if<SoftmaxAttrs>(&attrs)) softmax->axis = 3;
    std::vector<ValueId> inputs = e_.node(n).inputs;
    for (ValueId& id : inputs)
      if ((id = with_axis(n, id)) < 0) return;
    const ValueId out = e_.node(n).outputs[0];
    const ValueId whole = e_.insert(n, attrs, inputs);
    if (whole < 0) return;
    added_[out] = whole;
    e_.replace(n, ViewAttrs{IntList(dims(out)), -1}, {whole});
  }

  static constexpr int kSteps = 8;
  Editor e_;
  Dims heads_;                        // B and H of what is raised
  std::set<int> chosen_;              // nodes that get a first axis of 1
  std::map<ValueId, ValueId> added_;  // their results with it
};

}  // namespace

int raise_attention(Graph& graph) { return Raiser(graph).run(); }

}  // namespace sinter::convert
