// Part of recognise-attention. Attention whose heads are the first of three axes, as torch.bmm computes it,
// with values that are a view of some with a batch of 1: its products, its softmax and what is between them
// get a first axis of 1, so that they read values of rank 4 as they are.
#include <algorithm>
#include <map>
#include <set>

#include "converter/passes/editor.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

constexpr int kMostBetween = 8;  // between a softmax and a product

class Lifting {
 public:
  explicit Lifting(Graph& graph) : e_(graph) {
    for (int n = 0; n < e_.size(); ++n)
      for (const ValueId id : e_.node(n).inputs) readers_[id].push_back(n);
  }

  int run() {
    for (int n = 0; n < e_.size(); ++n)
      if (const auto* a = e_.node(n).as<SoftmaxAttrs>(); a != nullptr && a->axis == 2 && a->log == 0) mark(n);
    if (chosen_.empty()) return 0;
    for (int n = 0; n < e_.size(); ++n) {
      if (chosen_.count(n) != 0)
        lift(n);
      else
        pass(n);
    }
    return e_.commit();
  }

 private:
  const Dims& dims(ValueId id) const { return e_.value(id).dims; }
  bool fits(ValueId id) const {
    return dims(id).size() == 3 && e_.value(id).dtype == DType::kFloat32 && e_.value(id).bounded_dims.empty();
  }
  bool is_product(int n) {
    return n >= 0 && e_.node(n).as<MatMulAttrs>() != nullptr && fits(e_.node(n).inputs[0]) &&
           fits(e_.node(n).inputs[1]) && fits(e_.node(n).outputs[0]);
  }
  bool is_between(int n) {
    const Node& node = e_.node(n);
    return unclamped(node.as<AddAttrs>()) || unclamped(node.as<MulAttrs>()) ||
           unclamped(node.as<DivAttrs>()) || node.as<WhereAttrs>() != nullptr;
  }
  bool is_plain_view(int n) {
    const auto* view = e_.node(n).as<ViewAttrs>();
    return view != nullptr && view->dtype < 0;
  }

  // A view of [1, heads, N, D].
  bool has_heads(ValueId id) {
    const int view = e_.made_by<ViewAttrs>(id);
    return view >= 0 && is_plain_view(view) && IntList(dims(e_.node(view).inputs[0])) == with_one(dims(id));
  }

  // The product that `id` comes from, with the nodes of rank 3 between; false: something else.
  bool follow_up(ValueId id, std::set<int>* found) {
    for (int steps = 0; steps < kMostBetween; ++steps) {
      const int n = e_.producer(id);
      if (n < 0) return false;
      if (is_product(n)) return found->insert(n), true;
      const Node& node = e_.node(n);
      if (is_plain_view(n)) {
        id = node.inputs[0];
        continue;
      }
      if (!is_between(n) || e_.value(id).dtype != DType::kFloat32) return false;
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
    for (int steps = 0; steps < kMostBetween; ++steps) {
      if (readers_[id].size() != 1) return;
      const int n = readers_[id][0];
      if (is_product(n)) {
        if (e_.node(n).inputs[0] != id) return;
        found.insert(n);
        // Values of which padding is filled.
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

  static IntList with_one(const Dims& d) {
    IntList more;
    more.push(1);
    for (const int64_t size : d) more.push(size);
    return more;
  }
  // [1, ..] of an operand of rank 3, inserted before node n.
  ValueId lifted(int n, ValueId id) {
    if (dims(id).size() != 3) return id;
    if (const auto at = lifted_.find(id); at != lifted_.end()) return at->second;
    const IntList more = with_one(dims(id));
    const int view = e_.producer(id);
    const ValueId from = view >= 0 && is_plain_view(view) ? e_.node(view).inputs[0] : id;
    return IntList(dims(from)) == more ? from : e_.insert(n, ViewAttrs{more, -1}, {from});
  }
  void lift(int n) {
    OpAttrs attrs = e_.node(n).attrs;
    if (auto* softmax = std::get_if<SoftmaxAttrs>(&attrs)) softmax->axis = 3;
    std::vector<ValueId> inputs = e_.node(n).inputs;
    for (ValueId& id : inputs)
      if ((id = lifted(n, id)) < 0) return;
    const ValueId out = e_.node(n).outputs[0];
    const ValueId whole = e_.insert(n, attrs, inputs);
    if (whole < 0) return;
    lifted_[out] = whole;
    e_.replace(n, ViewAttrs{IntList(dims(out)), -1}, {whole});
  }
  // A view of rank 4 of what was lifted is that.
  void pass(int n) {
    if (!is_plain_view(n)) return;
    const auto at = lifted_.find(e_.node(n).inputs[0]);
    if (at != lifted_.end() && same_dims(e_.graph(), at->second, e_.node(n).outputs[0]))
      e_.bypass(n, at->second);
  }

  Editor e_;
  std::map<ValueId, std::vector<int>> readers_;
  std::set<int> chosen_;
  std::map<ValueId, ValueId> lifted_;
};

}  // namespace

int lift_attention(Graph& graph) { return Lifting(graph).run(); }

}  // namespace sinter::convert
