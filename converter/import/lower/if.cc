// If with a condition that is known only while running.
#include <algorithm>
#include <set>

#include "converter/import/bounded.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/control.h"
#include "converter/ir/dims.h"
#include "converter/types/promote.h"
#include "converter/types/settle.h"

namespace sinter::convert {
namespace {

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

std::optional<OpenAxes> open_axes(const Value& a, const Value& b) {
  if (a.dims.size() != b.dims.size()) return std::nullopt;
  OpenAxes open;
  const auto bounded = [](const Value& v, size_t axis) {
    return std::any_of(v.extents.begin(), v.extents.end(),
                       [&](const auto& e) { return e.first == static_cast<int>(axis); });
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
    const auto own =
        std::find_if(v.extents.begin(), v.extents.end(), [&](const auto& e) { return e.first == axis; });
    const int64_t dim = v.dims[static_cast<size_t>(axis)];
    graph.outputs.push_back(
        own != v.extents.end() ? own->second : graph.add_constant(Constant::scalar_int(DType::kInt64, dim)));
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

// If-1 to 25.
bool lower_if(NodeLowering& n) {
  const ImportedGraph* branches[2] = {n.attr_graph("then_branch"), n.attr_graph("else_branch")};
  if (!branches[0] || !branches[1]) return n.refuse("has no {}", branches[0] ? "else_branch" : "then_branch");
  if (n.input(0) == kUnknown) return false;
  if (n.input(0) == kAbsent) return n.refuse("lacks its condition");
  if (const auto taken = known_truth(n, n.input(0))) {
    const std::vector<ValueId> results = n.parent().inline_body(*branches[*taken ? 0 : 1], {});
    bool good = true;
    for (size_t i = 0; i < results.size(); ++i) good &= n.output(i, results[i]);
    return good;
  }
  if (n.size(n.input(0)) != 1) return n.refuse("the condition has {} elements, not one", n.size(n.input(0)));
  auto then = n.parent().lower_body(*branches[0], {}, n.parent().diagnostics());
  auto otherwise = n.parent().lower_body(*branches[1], {}, n.parent().diagnostics());
  if (!then || !otherwise) return false;
  Graph &a = *then->graph, &b = *otherwise->graph;
  if (a.outputs.size() != b.outputs.size())
    return n.refuse("its branches give {} and {} results", a.outputs.size(), b.outputs.size());
  const auto advice = [&] {
    return n.parent().fixing_advice(n.input(0)) + ", and convert once for each branch";
  };
  std::vector<ValueFact> facts;
  std::vector<OpenAxes> lengths;
  const size_t count = a.outputs.size();
  for (size_t i = 0; i < count; ++i) {
    const Value x = a.value(a.outputs[i]), y = b.value(b.outputs[i]);  // copies: casts add values
    const auto open = open_axes(x, y);
    if (!open)
      return n.refuse_advising(advice(),
                               "result {} is {} in one branch and {} in the other; both must have one rank",
                               i, to_string(x.dtype, x.dims), to_string(y.dtype, y.dims));
    lengths.push_back(*open);
    const auto common = meet(x, y);
    if (!common)
      return n.refuse_advising("cast it in one of the branches",
                               "result {} is '{}' {} in one branch and '{}' {} in the other", i,
                               branches[0]->outputs[i].name, dtype_name(x.dtype),
                               branches[1]->outputs[i].name, dtype_name(y.dtype));
    for (Graph* g : {&a, &b}) {
      if (g->value(g->outputs[i]).dtype == *common) continue;
      Builder builder(*g);
      builder.set_origin({n.node().name, "If"});
      std::vector<ValueId> cast;
      if (!builder.emit(CastAttrs{static_cast<int64_t>(*common), 1}, {g->outputs[i]}, 1, &cast).ok())
        return n.refuse("result {} cannot be cast to {}", i, dtype_name(*common));
      n.parent().ledger().add({g->value(g->outputs[i]).name,
                               n.node().name,
                               "If",
                               g->value(g->outputs[i]).dtype,
                               *common,
                               "branch.edge",
                               "the branches give different types",
                               TypeEffect::kCast,
                               {}});
      g->value(cast[0]).extents = g->value(g->outputs[i]).extents;
      g->outputs[i] = cast[0];
    }
    facts.push_back({*common, open->dims});
  }
  for (size_t i = 0; i < count; ++i) {
    for (Graph* g : {&a, &b})
      if (!give_lengths(*g, i, lengths[i], {n.node().name, "If"}))
        return n.refuse("result {} cannot be padded", i);
    facts.insert(facts.end(), lengths[i].axes.size(), ValueFact{DType::kInt64, {}});
  }
  const std::vector<ValueId> captures = merge_captures(*then, *otherwise, n.parent().graph());
  separate_outputs(a);
  separate_outputs(b);
  const ValueId condition = n.reshape(n.cast(n.input(0), DType::kBool), {});
  const auto results =
      add_control(n, IfAttrs{}, {condition}, captures, {then->graph, otherwise->graph}, facts);
  for (size_t i = 0, next = count; i < count; ++i) {
    Bounded bounded_result(n);
    std::vector<LengthId> all = bounded_result.of_axes(results[i]);
    for (const int axis : lengths[i].axes)
      all[static_cast<size_t>(axis)] =
          bounded_result.lengths().symbol(results[next++], {0, lengths[i].dims[static_cast<size_t>(axis)]});
    n.output(i, bounded_result.with_lengths(results[i], all));
  }
  return true;
}
}  // namespace

std::span<const LowerRule> if_rules() {
  static constexpr LowerRule kRules[] = {{"If", lower_if, "", 28, true}};
  return kRules;
}

}  // namespace sinter::convert
