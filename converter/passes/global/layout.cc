// layout: where values are held channels-first and where channels-last, chosen for the whole graph at once.
//
// Every operation that works in any order of axes (relabel.h) is a variable; a value whose
// producer and readers differ costs its bytes once, for one Transpose. The cheapest labelling is a minimum
// cut. Then the graph is rebuilt; Transposes that the labels made superfluous are simply not emitted.
#include <algorithm>
#include <stdexcept>

#include "converter/ir/op_traits.h"
#include "converter/passes/editor.h"
#include "converter/passes/global/min_cut.h"
#include "converter/passes/global/relabel.h"
#include "converter/passes/passes.h"

namespace sinter::convert {
namespace {

bool is_spatial(Op op) { return has_traits(op, kChannelsLast); }

// Bytes that Transposes and such move, with a little for the step itself.
int64_t moved_bytes(const Value& v, const IntList& perm) {
  return moves_only_ones(perm, v.dims) ? 1 : static_cast<int64_t>(dense_bytes(v.dtype, v.dims)) + 16;
}

int64_t transposed_bytes(const Graph& graph) {
  int64_t total = 0;
  for (const Node& node : graph.nodes)
    if (const auto* t = node.as<TransposeAttrs>()) total += moved_bytes(graph.value(node.inputs[0]), t->perm);
  return total;
}

enum class Role {
  kFixed,     // needs its order
  kVariable,  // does not
  kTo,        // a Transpose into the frame's order
  kFrom,      // a Transpose out of it
  kInner,     // within a shuffle, whose last node decides
};

struct Plan {
  Role role = Role::kFixed;
  std::optional<Relabelled> relabelled;
  std::optional<Shuffle> shuffle;
  int first = -1;     // of a shuffle: its first node
  int owner = -1;     // of an inner node: the shuffle's last node
  int variable = -1;  // in the cut
};

class Relayout {
 public:
  Relayout(const Graph& graph, Frame frame)
      : old_(graph), graph_(graph), frame_(frame), uses_(graph), plans_(graph.nodes.size()) {}

  Graph run() {
    for (size_t n = 0; n < old_.nodes.size(); ++n) classify(static_cast<int>(n));
    label();
    rebuild();
    return std::move(graph_);
  }

 private:
  const Value& old(ValueId id) const { return old_.value(id); }
  Plan& plan(int n) { return plans_[static_cast<size_t>(n)]; }
  int rank(ValueId id) const { return static_cast<int>(old(id).dims.size()); }

  bool unbounded(const Node& node) const {
    const auto open = [&](ValueId id) { return id >= 0 && !old(id).bounded_dims.empty(); };
    return !std::any_of(node.inputs.begin(), node.inputs.end(), open) &&
           !std::any_of(node.outputs.begin(), node.outputs.end(), open);
  }

  void classify(int n) {
    const Node& node = old_.nodes[static_cast<size_t>(n)];
    if (!unbounded(node)) return;
    if (const auto* t = node.as<TransposeAttrs>()) {
      if (t->perm.size() < 3) return;
      const bool to = t->perm == frame_.perm(t->perm.size()),
                 from = t->perm == frame_.inverse(t->perm.size());
      if (to && from)
        plan(n).role = leads_out(node) ? Role::kFrom : Role::kTo;
      else if (to || from)
        plan(n).role = to ? Role::kTo : Role::kFrom;
      return;
    }
    if (node.op() == Op::kView && find_shuffle(n)) return;
    plan(n).relabelled = relabel(old_, node, frame_);
    if (plan(n).relabelled) plan(n).role = Role::kVariable;
  }

  // A Transpose that is its own inverse (rank 3): out of the channels-last order, or into it?
  bool leads_out(const Node& node) const {
    for (const int reader : uses_.readers[static_cast<size_t>(node.outputs[0])])
      if (reader >= 0 && is_spatial(old_.nodes[static_cast<size_t>(reader)].op())) return !frame_.to_last;
    const int maker = uses_.producer[static_cast<size_t>(node.inputs[0])];
    const bool fixed = maker < 0 || plans_[static_cast<size_t>(maker)].role == Role::kFixed;
    return fixed == frame_.to_last;
  }

  bool find_shuffle(int last) {
    const Node& join = old_.nodes[static_cast<size_t>(last)];
    const int t = uses_.producer[static_cast<size_t>(join.inputs[0])];
    if (t < 0 || !uses_.single_reader(join.inputs[0])) return false;
    const Node& transpose = old_.nodes[static_cast<size_t>(t)];
    if (transpose.op() != Op::kTranspose || !uses_.single_reader(transpose.inputs[0])) return false;
    const int s = uses_.producer[static_cast<size_t>(transpose.inputs[0])];
    if (s < 0 || old_.nodes[static_cast<size_t>(s)].op() != Op::kView) return false;
    const Node& split = old_.nodes[static_cast<size_t>(s)];
    if (split.as<ViewAttrs>()->dtype >= 0 || join.as<ViewAttrs>()->dtype >= 0 || !unbounded(split))
      return false;
    if (plan(s).role == Role::kInner || plan(t).role == Role::kInner) return false;
    plan(last).shuffle =
        relabel_shuffle(old(split.inputs[0]).dims, old(transpose.inputs[0]).dims,
                        transpose.as<TransposeAttrs>()->perm, old(join.outputs[0]).dims, frame_);
    if (!plan(last).shuffle) return false;
    plan(last).role = Role::kVariable;
    plan(last).first = s;
    plan(s) = plan(t) = Plan{};
    plan(s).role = plan(t).role = Role::kInner;
    plan(s).owner = plan(t).owner = last;
    return true;
  }

  // Whether this operand is read in the order of the node's label.
  bool tied(int n, size_t operand) {
    if (plan(n).shuffle) return false;
    const auto& r = plan(n).relabelled;
    const ValueId id = old_.nodes[static_cast<size_t>(n)].inputs[operand];
    if (!r || !r->tied[operand] || id < 0) return false;
    if (!is_elementwise(old_.nodes[static_cast<size_t>(n)].op())) return true;
    return rank(id) == rank(old_.nodes[static_cast<size_t>(n)].outputs[0]);
  }

  void label() {
    MinCut cut;
    for (Plan& p : plans_)
      if (p.role == Role::kVariable) p.variable = cut.add_variable();
    // Per value: who makes it, who reads it.
    std::vector<int> maker(old_.values.size(), MinCut::kZero);
    std::vector<std::vector<int>> readers(old_.values.size());
    const auto read = [&](ValueId id, int who) {
      if (id >= 0) readers[static_cast<size_t>(id)].push_back(who);
    };
    for (int n = 0; n < static_cast<int>(old_.nodes.size()); ++n) {
      const Node& node = old_.nodes[static_cast<size_t>(n)];
      Plan& p = plan(n);
      if (p.role == Role::kInner) {
        if (n == plan(p.owner).first) read(node.inputs[0], plan(p.owner).variable);
        continue;
      }
      const bool marks = p.role == Role::kVariable && (p.shuffle || p.relabelled->output);
      for (const ValueId id : node.outputs)
        if (id >= 0)
          maker[static_cast<size_t>(id)] = marks                   ? p.variable
                                           : p.role == Role::kFrom ? MinCut::kOne
                                                                   : MinCut::kZero;
      if (p.shuffle) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId id = node.inputs[i];
        if (id < 0) continue;
        if (p.role == Role::kTo) {
          read(id, MinCut::kOne);
        } else if (tied(n, i)) {
          read(id, p.variable);
        } else if (p.role == Role::kVariable && p.relabelled->tied[i]) {
          // An operand of lower rank: brought to this rank and into the order for this reader alone.
          if (!old_.is_constant(id) && element_count(old(id).dims) != 1)
            cut.add_cost(p.variable, MinCut::kZero,
                         static_cast<int64_t>(dense_bytes(old(id).dtype, old(id).dims)));
        } else {
          read(id, MinCut::kZero);
        }
      }
    }
    for (const ValueId id : old_.outputs) read(id, MinCut::kZero);
    for (size_t v = 0; v < old_.values.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (old_.is_constant(id) || rank(id) < 3 || readers[v].empty()) continue;
      const IntList perm = frame_.perm(rank(id));
      if (frame_.dims(old(id).dims) == old(id).dims && moves_only_ones(perm, old(id).dims)) continue;
      const int64_t cost = moved_bytes(old(id), perm);
      const int wants_one = cut.add_variable(), wants_zero = cut.add_variable();
      cut.add_cost(wants_one, maker[v], cost);   // some reader has label 1, the maker 0
      cut.add_cost(maker[v], wants_zero, cost);  // the other way round
      for (const int reader : readers[v]) {
        cut.add_cost(reader, wants_one, MinCut::kNever);
        cut.add_cost(wants_zero, reader, MinCut::kNever);
      }
    }
    // Towards the channels-last order ties are broken for more of it: activations stay beside convolutions.
    ones_ = cut.solve(frame_.to_last);
  }

  bool one(int n) { return plan(n).variable >= 0 && ones_[static_cast<size_t>(plan(n).variable)]; }

  // ---- the graph again

  struct Forms {
    ValueId own = kAbsent, framed = kAbsent;
  };

  void push(OpAttrs attrs, std::vector<ValueId> inputs, std::vector<ValueId> outputs, const Node& like) {
    graph_.nodes.push_back(
        {std::move(attrs), std::move(inputs), std::move(outputs), like.name, like.origin, {}});
  }
  ValueId emit(OpAttrs attrs, std::vector<ValueId> inputs, const Node& like) {
    Builder builder(graph_);
    builder.set_origin({like.name, like.origin});
    std::vector<ValueId> result;
    if (!builder.emit(std::move(attrs), std::move(inputs), 1, &result).ok())
      throw std::logic_error("layout: an operation cannot be moved");
    return result[0];
  }
  static OpAttrs reorder(const IntList& perm, const Dims& from, const Dims& to) {
    if (moves_only_ones(perm, from)) return ViewAttrs{IntList(std::span<const int64_t>(to))};
    return TransposeAttrs{perm};
  }

  // The value in its own order.
  ValueId own(ValueId id, const Node& like) {
    if (id < 0) return id;
    Forms& f = forms_[static_cast<size_t>(id)];
    if (f.own != kAbsent) return f.own;
    const Dims dims = old(id).dims;
    if (graph_.value(f.framed).dims == dims && moves_only_ones(frame_.perm(rank(id)), dims) &&
        !old_.is_output(id))
      return f.own = f.framed;
    push(reorder(frame_.inverse(rank(id)), graph_.value(f.framed).dims, dims), {f.framed}, {id}, like);
    return f.own = id;
  }

  // The value in the frame's order, as an operand of this rank.
  ValueId framed(ValueId id, int to_rank, const Node& like) {
    if (id < 0) return id;
    Forms& f = forms_[static_cast<size_t>(id)];
    const Dims own_dims = old(id).dims;
    if (rank(id) < to_rank) {
      if (element_count(own_dims) == 1) return own(id, like);
      Dims dims(static_cast<size_t>(to_rank) - own_dims.size(), 1);
      dims.insert(dims.end(), own_dims.begin(), own_dims.end());
      const ValueId wide = emit(ViewAttrs{IntList(std::span<const int64_t>(dims))}, {own(id, like)}, like);
      return emit(reorder(frame_.perm(to_rank), dims, frame_.dims(dims)), {wide}, like);
    }
    if (f.framed != kAbsent) return f.framed;
    const IntList perm = frame_.perm(to_rank);
    if (frame_.dims(own_dims) == own_dims && moves_only_ones(perm, own_dims)) return f.framed = f.own;
    return f.framed = emit(reorder(perm, own_dims, frame_.dims(own_dims)), {f.own}, like);
  }

  void rebuild() {
    forms_.resize(old_.values.size());
    graph_.nodes.clear();
    for (size_t v = 0; v < old_.values.size(); ++v)
      if (old_.values[v].constant) forms_[v].own = static_cast<ValueId>(v);
    for (const ValueId id : old_.inputs) forms_[static_cast<size_t>(id)].own = id;
    for (int n = 0; n < static_cast<int>(old_.nodes.size()); ++n) place(n);
    static const Node kEnd;
    for (ValueId& id : graph_.outputs) {
      const ValueId now = own(id, old_.nodes.empty() ? kEnd : old_.nodes.back());
      if (now != id) stand_in(id, now);
    }
    for (Value& v : graph_.values)
      for (auto& [axis, id] : v.bounded_dims) id = own(id, old_.nodes.back());
    remove_dead_nodes(graph_);
    keep_names();
  }

  void place(int n) {
    const Node& node = old_.nodes[static_cast<size_t>(n)];
    Plan& p = plan(n);
    const auto form = [&](size_t output) -> Forms& {
      return forms_[static_cast<size_t>(node.outputs[output])];
    };
    if (p.role == Role::kTo) {
      form(0).own = framed(node.inputs[0], rank(node.inputs[0]), node);
    } else if (p.role == Role::kFrom) {
      form(0).framed = own(node.inputs[0], node);
    } else if (p.role == Role::kInner && one(p.owner)) {
      // Emitted with the last of the three.
    } else if (p.role == Role::kVariable && p.shuffle && one(n)) {
      const ValueId x = old_.nodes[static_cast<size_t>(p.first)].inputs[0];
      ValueId y = emit(ViewAttrs{p.shuffle->split}, {framed(x, rank(x), node)}, node);
      y = emit(TransposeAttrs{p.shuffle->perm}, {y}, node);
      form(0).framed = emit(ViewAttrs{p.shuffle->joined}, {y}, node);
    } else if (p.role == Role::kVariable && !p.shuffle && one(n)) {
      place_framed(node, *p.relabelled);
    } else {
      Node copy = node;
      for (ValueId& id : copy.inputs) id = own(id, node);
      graph_.nodes.push_back(std::move(copy));
      for (const ValueId id : node.outputs)
        if (id >= 0) forms_[static_cast<size_t>(id)].own = id;
    }
  }

  void place_framed(const Node& node, const Relabelled& relabelled) {
    const bool elementwise = is_elementwise(node.op());
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const int wanted = id < 0 ? 0 : elementwise ? rank(node.outputs[0]) : rank(id);
      inputs.push_back(relabelled.tied[i] ? framed(id, wanted, node) : own(id, node));
    }
    std::vector<bool> wanted;
    for (const ValueId id : node.outputs) wanted.push_back(id >= 0);
    if (!relabelled.output) {
      // Same result in its own order.
      push(relabelled.attrs, std::move(inputs), node.outputs, node);
      for (const ValueId id : node.outputs)
        if (id >= 0) forms_[static_cast<size_t>(id)].own = id;
      return;
    }
    Builder builder(graph_);
    builder.set_origin({node.name, node.origin});
    std::vector<ValueId> results;
    if (!builder.emit(relabelled.attrs, std::move(inputs), wanted, &results).ok())
      throw std::logic_error("layout: an operation cannot be moved");
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] < 0) continue;
      Forms& f = forms_[static_cast<size_t>(node.outputs[i])];
      (rank(node.outputs[i]) < 3 ? f.own : f.framed) = results[i];  // numbers have no order
    }
  }

  // The public value `id` is what `now` holds.
  void stand_in(ValueId id, ValueId now) {
    const bool own_node = std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& n) {
      return std::find(n.outputs.begin(), n.outputs.end(), now) != n.outputs.end();
    });
    if (!own_node || old_.is_output(now)) {
      push(CopyAttrs{}, {now}, {id}, old_.nodes.empty() ? Node{} : old_.nodes.back());
    } else {
      for (Node& node : graph_.nodes) {
        std::replace(node.inputs.begin(), node.inputs.end(), now, id);
        std::replace(node.outputs.begin(), node.outputs.end(), now, id);
      }
      for (Forms& f : forms_) {
        if (f.own == now) f.own = id;
        if (f.framed == now) f.framed = id;
      }
    }
    forms_[static_cast<size_t>(id)].own = id;
  }

  // A value that now exists only in the other order keeps its name there, and records which order that is.
  void keep_names() {
    std::vector<bool> exists(graph_.values.size());
    for (const Node& node : graph_.nodes)
      for (const ValueId id : node.outputs)
        if (id >= 0) exists[static_cast<size_t>(id)] = true;
    for (size_t v = 0; v < forms_.size(); ++v) {
      const ValueId now = forms_[v].framed;
      if (now < 0 || exists[v] || !exists[static_cast<size_t>(now)] || !graph_.value(now).name.empty())
        continue;
      const Value& named = old_.values[v];
      Value& value = graph_.value(now);
      if (value.dtype != named.dtype) continue;
      value.model_dtype = named.model_dtype;
      if (named.name.empty()) continue;
      value.name = named.name;
      value.order.clear();
      for (const int64_t axis : frame_.perm(rank(static_cast<ValueId>(v))))
        value.order.push_back(named.order.empty() ? static_cast<int>(axis)
                                                  : named.order[static_cast<size_t>(axis)]);
    }
  }

  const Graph& old_;
  Graph graph_;
  Frame frame_;
  Uses uses_;
  std::vector<Plan> plans_;
  std::vector<bool> ones_;
  std::vector<Forms> forms_;
};

}  // namespace

int assign_layout(Graph& graph) {
  int changes = simplify_transposes(graph);
  for (const bool to_last : {true, false, true}) {
    const int64_t before = transposed_bytes(graph);
    if (before == 0 || !may_rewrite()) break;
    Graph next = Relayout(graph, Frame{to_last}).run();
    simplify_transposes(next);
    const int64_t after = transposed_bytes(next);
    if (after > before) continue;
    enter_rewrite({});
    ++changes;  // nodes are other ones, too, where as many bytes are transposed
    graph = std::move(next);
  }
  return changes;
}

}  // namespace sinter::convert
