// If with a condition that is computed at run time.
#include <algorithm>
#include <map>
#include <set>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/control.h"
#include "converter/import/lower/if_readers.h"
#include "converter/import/lower/stack.h"
#include "converter/import/lower/unfit_branch.h"
#include "converter/ir/dims.h"
#include "converter/types/branch_edge.h"

namespace sinter::convert {
namespace {

constexpr const char* kBranches[] = {"then_branch", "else_branch"};

// Gives both branches the same captured inputs in the same order.
std::vector<ValueId> merge_captures(LoweredBody& a, LoweredBody& b, const Graph& outer) {
  std::vector<ValueId> all = a.captures;
  for (const ValueId id : b.captures)
    if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
  for (LoweredBody* body : {&a, &b}) {
    std::vector<ValueId> inputs;
    for (const ValueId id : all) {
      const auto at = std::find(body->captures.begin(), body->captures.end(), id);
      if (at != body->captures.end()) {
        inputs.push_back(body->graph->inputs[static_cast<size_t>(at - body->captures.begin())]);
      } else {
        inputs.push_back(body->graph->add_value({}, outer.value(id).dtype, outer.value(id).dims));
      }
    }
    body->graph->inputs = inputs;
  }
  return all;
}

// Lengths of a result that differ between the branches: both give the padded value and each such length.
struct OpenAxes {
  Dims dims;
  std::vector<int> axes;
};

OpenAxes open_axes(const Value& a, const Value& b) {
  OpenAxes open;
  const auto bounded = [](const Value& v, size_t axis) {
    return std::any_of(v.bounded_dims.begin(), v.bounded_dims.end(),
                       [&](const auto& e) { return e.axis == static_cast<int>(axis); });
  };
  for (size_t i = 0; i < a.dims.size(); ++i) {
    open.dims.push_back(std::max(a.dims[i], b.dims[i]));
    if (a.dims[i] != b.dims[i] || bounded(a, i) || bounded(b, i)) open.axes.push_back(static_cast<int>(i));
  }
  return open;
}

// Pads a branch's result, and appends its lengths to the branch's results.
bool give_lengths(Graph& graph, size_t result, const OpenAxes& open, const Builder::Origin& origin) {
  Builder builder(graph);
  builder.set_origin(origin);
  const Value v = graph.value(graph.outputs[result]);
  for (const int axis : open.axes) {
    const auto own = std::find_if(v.bounded_dims.begin(), v.bounded_dims.end(),
                                  [&](const auto& e) { return e.axis == axis; });
    const int64_t dim = v.dims[static_cast<size_t>(axis)];
    graph.outputs.push_back(own != v.bounded_dims.end()
                                ? own->length
                                : graph.add_constant(Constant::scalar_int(DType::kInt64, dim)));
  }
  if (v.dims == open.dims) return true;
  PadAttrs pad;
  for (size_t i = 0; i < v.dims.size(); ++i) pad.pads.push(0);
  for (size_t i = 0; i < v.dims.size(); ++i) pad.pads.push(open.dims[i] - v.dims[i]);
  std::vector<ValueId> padded;
  if (!builder.emit(pad, {graph.outputs[result]}, 1, &padded).ok()) return false;
  graph.outputs[result] = padded[0];
  return true;
}

// The branches, lowered until every result has one rank in both.
class Branches {
 public:
  Branches(NodeLowering& n, const ImportedGraph& then, const ImportedGraph& otherwise)
      : n_(n), sources_{&then, &otherwise}, tensors_(then.outputs.size()) {}

  // False: refused.
  bool lower() {
    for (const ImportedGraph* source : sources_)
      for (const ImportedValueInfo& out : source->outputs) names_[source == sources_[1]].push_back(out.name);
    if (names_[0].size() != names_[1].size())
      return n_.refuse("its branches give {} and {} results", names_[0].size(), names_[1].size());
    const size_t decided = n_.parent().ledger().size();
    for (;;) {
      Diagnostics reasons;
      const bool good = lower_both(reasons);
      if (!good && sequences_again_) {
        sequences_again_ = false;
        n_.parent().ledger().rewind(decided);
        continue;
      }
      if (good && refuse_indices()) return false;
      const std::optional<size_t> differs = good ? differing_rank() : std::nullopt;
      if (!differs) {
        for (const Diagnostic& d : reasons.all()) n_.parent().diagnostics().add(d);
        return good;
      }
      if (!move_readers(*differs)) return false;
      n_.parent().ledger().rewind(decided);
    }
  }

  LoweredBody& body(size_t k) { return *bodies_[k]; }
  // The name of a result in the enclosing graph, and whether it is a stack of sequences.
  const std::string& name(size_t i) const {
    static const std::string kNone;
    const std::vector<std::string>& all = moved() ? readers_.results : n_.node().outputs;
    return i < all.size() ? all[i] : kNone;
  }
  bool is_stack(size_t i) const { return stacks_.count(i) != 0; }
  // The size that result i is expected to have along an axis in both branches.
  std::optional<int64_t> expected(size_t i, int axis) const {
    const auto at = static_cast<size_t>(axis);
    const auto a = expected_[0][i][at], b = expected_[1][i][at];
    return a == b ? a : std::nullopt;
  }
  const std::vector<const ImportedNode*>& readers() const { return readers_.nodes; }
  bool moved() const { return moved_; }

 private:
  // A branch that does not fit the shapes, where the other one does, is replaced by one that fails.
  bool lower_both(Diagnostics& reasons) {
    stacks_.clear();
    Diagnostics own[2];
    bool unfit[2];
    for (size_t k = 0; k < 2; ++k) {
      const std::set<size_t> stacks = stacks_;
      const size_t decided = n_.parent().ledger().size();
      lower_branch(k, own[k]);
      unfit[k] = !bodies_[k] && refused_for_shapes(own[k]);
      if (!unfit[k]) continue;
      stacks_ = stacks;
      n_.parent().ledger().rewind(decided);
    }
    for (size_t k = 0; k < 2; ++k) {
      const size_t other = 1 - k;
      if (!unfit[k] || !bodies_[other]) {
        for (const Diagnostic& d : own[k].all()) reasons.add(d);
        continue;
      }
      bodies_[k] = unfit_branch(n_, *bodies_[other]->graph, kBranches[k], own[k], reasons);
      expected_[k] = expected_[other];
    }
    return bodies_[0] && bodies_[1];
  }

  void lower_branch(size_t k, Diagnostics& reasons) {
    bodies_[k] = n_.parent().lower_body(*sources_[k], {}, reasons, {}, [&](GraphLowering& inner) {
      std::vector<ValueId>& results = inner.graph().outputs;
      if (moved()) {
        std::map<std::string, ValueId> given;
        for (size_t i = 0; i < results.size() && i < n_.node().outputs.size(); ++i)
          given[n_.node().outputs[i]] = results[i];
        results = inner.lower_behind(given, readers_.nodes, readers_.results);
      }
      tensors_.resize(results.size());
      ImportedNode owner;
      owner.name = n_.node().name, owner.op_type = n_.node().op_type;
      NodeLowering end(inner, owner);
      expected_[k].clear();
      for (size_t i = 0; i < results.size(); ++i) {
        stack_result(end, i, &results[i]);
        expected_[k].push_back(expected_dims(inner, results[i]));
      }
    });
  }

  // A sequence leaves a branch as a stack. An empty one has the tensors' shape from the other branch.
  void stack_result(NodeLowering& end, size_t i, ValueId* result) {
    if (!is_sequence(*result)) return;
    stacks_.insert(i);
    const std::vector<ValueId>* items = end.parent().sequence(*result);
    if (items != nullptr && items->empty()) {
      sequences_again_ |= !tensors_[i] && !asked_;
      asked_ = true;
      *result = tensors_[i] ? empty_stack(end, *tensors_[i]) : kUnknown;
      return;
    }
    to_stack(end, result, {});
    if (*result < 0) return;
    const Value& v = end.parent().graph().value(*result);
    tensors_[i] = ValueFact{v.dtype, {v.dims.begin() + 1, v.dims.end()}};
  }

  // True: refused.
  bool refuse_indices() {
    const Graph &a = *bodies_[0]->graph, &b = *bodies_[1]->graph;
    for (size_t i = 0; i < a.outputs.size(); ++i)
      if (refuse_mixed_index(n_, a.value(a.outputs[i]).dtype, "in one branch", b.value(b.outputs[i]).dtype,
                             "in the other", name(i)))
        return true;
    return false;
  }

  std::optional<size_t> differing_rank() const {
    const Graph &a = *bodies_[0]->graph, &b = *bodies_[1]->graph;
    for (size_t i = 0; i < a.outputs.size(); ++i)
      if (a.value(a.outputs[i]).dims.size() != b.value(b.outputs[i]).dims.size()) return i;
    return std::nullopt;
  }

  // Lets the branches compute what is read of result i.
  bool move_readers(size_t i) {
    constexpr size_t kMostMoved = 64;
    // One without a name has no reader, and is dropped.
    std::set<std::string> names{name(i)};
    names.erase("");
    const auto all = n_.parent().may_move() ? with_readers_of(n_, readers_, names) : std::nullopt;
    if (!all || all->nodes.size() > kMostMoved) {
      const Graph &a = *bodies_[0]->graph, &b = *bodies_[1]->graph;
      const Value &x = a.value(a.outputs[i]), &y = b.value(b.outputs[i]);
      return n_.refuse_advising(
          n_.parent().fixing_advice(n_.input(0)) + ", and convert once for each branch",
          "result '{}' is {} in one branch and {} in the other; it must have one rank at the graph's output",
          name(i), to_string(x.dtype, x.dims), to_string(y.dtype, y.dims));
    }
    readers_ = *all, moved_ = true;
    for (const ImportedNode* node : readers_.before) n_.parent().lower_early(*node);
    n_.parent().builder().set_origin({n_.node().name, n_.node().op_type});
    tensors_.clear(), asked_ = false;
    return true;
  }

  NodeLowering& n_;
  const ImportedGraph* sources_[2];
  std::vector<std::string> names_[2];
  IfReaders readers_;
  bool moved_ = false;  // results are those of readers_
  std::optional<LoweredBody> bodies_[2];
  std::vector<std::optional<ValueFact>> tensors_;  // of sequences among the results
  std::set<size_t> stacks_;
  std::vector<std::vector<std::optional<int64_t>>> expected_[2];
  bool sequences_again_ = false, asked_ = false;
};

// A result of the If, or of a node that was lowered in its branches.
void give(NodeLowering& n, const std::string& name, ValueId v) {
  const std::vector<std::string>& own = n.node().outputs;
  const auto at = std::find(own.begin(), own.end(), name);
  if (at != own.end())
    n.output(static_cast<size_t>(at - own.begin()), v);
  else
    n.parent().define(name, n.parent().kept(name, v));
}

bool gives_constants(const Graph& branch) {
  return std::all_of(branch.outputs.begin(), branch.outputs.end(),
                     [&](ValueId v) { return branch.value(v).constant != nullptr; });
}

// Result i of branches that give constants: whoever gathers rows of it need not copy it.
ValueId chosen(NodeLowering& n, ValueId condition, const Graph& a, const Graph& b, size_t i) {
  const auto constant = [&](const Graph& branch) {
    const Value& v = branch.value(branch.outputs[i]);
    return n.parent().graph().add_constant(v.constant, v.name);
  };
  return n.emit_padded(WhereAttrs{}, {condition, constant(a), constant(b)}, {true})[0];
}

// If-1 to 25.
bool lower_if(NodeLowering& n) {
  const ImportedGraph* branches[2] = {n.attr_graph(kBranches[0]), n.attr_graph(kBranches[1])};
  if (!branches[0] || !branches[1]) return n.refuse("has no {}", kBranches[branches[0] ? 1 : 0]);
  if (n.input(0) == kUnknown) return false;
  if (n.input(0) == kAbsent) return n.refuse("lacks its condition");
  if (const auto taken = known_truth(n, n.input(0))) {
    const std::vector<ValueId> results = n.parent().inline_body(*branches[*taken ? 0 : 1], {});
    bool good = true;
    for (size_t i = 0; i < results.size(); ++i) good &= n.output(i, results[i]);
    return good;
  }
  if (n.size(n.input(0)) != 1) return n.refuse("the condition has {} elements, not one", n.size(n.input(0)));
  Branches both(n, *branches[0], *branches[1]);
  if (!both.lower()) return false;
  LoweredBody &then = both.body(0), &otherwise = both.body(1);
  Graph &a = *then.graph, &b = *otherwise.graph;
  std::vector<ValueFact> facts;
  std::vector<OpenAxes> lengths;
  const size_t count = a.outputs.size();
  for (size_t i = 0; i < count; ++i) {
    const Value x = a.value(a.outputs[i]), y = b.value(b.outputs[i]);  // copies: casts add values
    const OpenAxes open = open_axes(x, y);
    lengths.push_back(open);
    const auto common = meet_at_edge(x, y);
    if (!common)
      return n.refuse_advising("cast it in one of the branches",
                               "result {} is '{}' {} in one branch and '{}' {} in the other", i, x.name,
                               dtype_name(x.dtype), y.name, dtype_name(y.dtype));
    for (Graph* g : {&a, &b}) {
      if (g->value(g->outputs[i]).dtype == *common) continue;
      Builder builder(*g);
      builder.set_origin({n.node().name, "If"});
      std::vector<ValueId> cast;
      if (!builder.emit(CastAttrs{static_cast<int64_t>(*common), 1}, {g->outputs[i]}, 1, &cast).ok())
        return n.refuse("result {} cannot be cast to {}", i, dtype_name(*common));
      n.record(g->value(g->outputs[i]).name, g->value(g->outputs[i]).dtype, *common, TypeRule::kBranchEdge,
               "the branches give different types", TypeEffect::kCast);
      g->value(cast[0]).bounded_dims = g->value(g->outputs[i]).bounded_dims;
      g->outputs[i] = cast[0];
    }
    facts.push_back({*common, open.dims});
  }
  for (size_t i = 0; i < count; ++i) {
    for (Graph* g : {&a, &b})
      if (!give_lengths(*g, i, lengths[i], {n.node().name, "If"}))
        return n.refuse("result {} cannot be padded", i);
    facts.insert(facts.end(), lengths[i].axes.size(), ValueFact{DType::kInt64, {}});
  }
  warn_of_fraction(n, fmt::format("its condition ('{}')", n.node().inputs[0]), n.parent().graph(),
                   n.input(0));
  const ValueId condition = n.reshape(n.cast(n.input(0), DType::kBool), {});
  std::vector<ValueId> results;
  if (gives_constants(a) && gives_constants(b)) {
    for (size_t i = 0; i < a.outputs.size(); ++i) results.push_back(chosen(n, condition, a, b, i));
  } else {
    const std::vector<ValueId> captures = merge_captures(then, otherwise, n.parent().graph());
    separate_outputs(a);
    separate_outputs(b);
    results = add_control(n, IfAttrs{}, {condition}, captures, {then.graph, otherwise.graph}, facts);
  }
  for (size_t i = 0, next = count; i < count; ++i) {
    Bounded bounded_result(n);
    std::vector<LengthId> all = bounded_result.of_axes(results[i]);
    for (const int axis : lengths[i].axes) {
      LengthId& length = all[static_cast<size_t>(axis)];
      length =
          bounded_result.lengths().symbol(results[next++], {0, lengths[i].dims[static_cast<size_t>(axis)]});
      if (const auto size = both.expected(i, axis)) bounded_result.lengths().expect_size(length, *size);
    }
    ValueId y = bounded_result.with_lengths(results[i], all);
    if (both.is_stack(i)) y = n.parent().add_stack(y);
    give(n, both.name(i), y);
  }
  for (const ImportedNode* node : both.readers()) n.parent().set_done(*node);
  // Values that only the readers read, in the branches, no longer exist.
  for (size_t i = 0; i < n.output_count() && both.moved(); ++i) n.absent_output(i);
  return true;
}
}  // namespace

std::span<const OnnxOperator> if_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"If", 1, lower_if, "", kTakesBounded | kTakesUnknown},
  };
  return kRules;
}

}  // namespace sinter::convert
