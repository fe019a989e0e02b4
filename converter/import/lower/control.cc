// Control flow: If and Loop (Scan: scan.cc). What is known at conversion is folded or unrolled; the rest
// becomes a planned body.
#include "converter/import/lower/control.h"

#include <algorithm>

#include "converter/import/lower/common.h"
#include "converter/types/promote.h"
#include "converter/types/settle.h"

namespace sinter::convert {
namespace {

// Iterations that may be unrolled where a body cannot be planned once for all of them.
constexpr int64_t kMostUnrolled = 256;
// Iterations that are unrolled because everything is constant and folds away.
constexpr int64_t kMostFolded = 4096;

const Graph& graph_of(NodeLowering& n) { return n.parent().graph(); }

// Appends a control node; its captured operands follow the given ones.
std::vector<ValueId> add_control(NodeLowering& n, OpAttrs attrs, std::vector<ValueId> operands,
                                 const std::vector<ValueId>& captures,
                                 std::vector<std::shared_ptr<Graph>> bodies,
                                 const std::vector<ValueFact>& results) {
  Graph& graph = n.parent().graph();
  operands.insert(operands.end(), captures.begin(), captures.end());
  Node node{std::move(attrs), std::move(operands), {}, n.node().name, n.node().op_type, std::move(bodies)};
  for (const ValueFact& f : results) node.outputs.push_back(graph.add_value({}, f.dtype, f.dims));
  std::vector<ValueId> out = node.outputs;
  graph.nodes.push_back(std::move(node));
  return out;
}

// The constant's single truth value, or nothing.
std::optional<bool> known_truth(NodeLowering& n, ValueId v) {
  const ConstantPtr c = n.constant(v);
  if (!c || c->size() != 1) return std::nullopt;
  if (const auto fraction = fraction_as_truth(*c))
    n.warn("the condition is {}; what is not zero is true", *fraction);
  return c->as_doubles()[0] != 0;
}

// ---- If

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

// What two values that take each other's place meet in. A constant bends to the other's type if it survives.
std::optional<DType> meet(const Value& a, const Value& b) {
  if (a.constant && is_float(b.dtype) && survives(*a.constant, b.dtype, true)) return b.dtype;
  if (b.constant && is_float(a.dtype) && survives(*b.constant, a.dtype, true)) return a.dtype;
  return promote_values(a.dtype, b.dtype);
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
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const Value x = a.value(a.outputs[i]), y = b.value(b.outputs[i]);  // copies: casts add values
    if (x.dims != y.dims || !x.extents.empty() || !y.extents.empty())
      return n.refuse_advising(advice(),
                               "result {} is {} in one branch and {} in the other; both must have one shape",
                               i, to_string(x.dtype, x.dims), to_string(y.dtype, y.dims));
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
      g->outputs[i] = cast[0];
    }
    facts.push_back({*common, x.dims});
  }
  const std::vector<ValueId> captures = merge_captures(*then, *otherwise, graph_of(n));
  separate_outputs(a);
  separate_outputs(b);
  const ValueId condition = n.reshape(n.cast(n.input(0), DType::kBool), {});
  const auto results =
      add_control(n, IfAttrs{}, {condition}, captures, {then->graph, otherwise->graph}, facts);
  for (size_t i = 0; i < results.size(); ++i) n.output(i, results[i]);
  return true;
}

// ---- Loop

// What the loop would give if its carried values could grow: the trial's size stands where shapes differ.
std::vector<ValueFact> assumed_results(NodeLowering& n, const Graph& body, const PlannedLoop& loop,
                                       size_t first) {
  const int64_t size = n.parent().options().assumed;
  std::vector<ValueFact> facts;
  for (size_t i = first; i < body.outputs.size() && size > 0; ++i) {
    const Value& v = body.value(body.outputs[i]);
    Dims dims = v.dims;
    if (i - first >= loop.carried.size()) {
      dims.insert(dims.begin(), loop.max_trips);
    } else {
      const Dims& start = n.dims(loop.carried[i - first]);
      if (start.size() != dims.size()) return {};
      for (size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] != start[axis]) dims[axis] = size;
    }
    facts.push_back({v.dtype, dims});
  }
  return facts;
}

}  // namespace

std::optional<std::vector<ValueId>> planned_loop(NodeLowering& n, const ImportedGraph& source,
                                                 PlannedLoop& loop, Diagnostics& diagnostics,
                                                 const GraphLowering::Prologue& prologue,
                                                 bool body_gives_condition) {
  const size_t carried = loop.carried.size(), first = body_gives_condition ? 1 : 0;
  std::optional<LoweredBody> body;
  // Types only ever widen, so this ends.
  for (bool again = true; again;) {
    again = false;
    const size_t decided = n.parent().ledger().size();
    std::vector<GraphLowering::Parameter> parameters{{loop.names[0], {DType::kInt64, {}}},
                                                     {loop.names[1], {DType::kBool, {}}}};
    for (size_t i = 0; i < carried; ++i)
      parameters.push_back({loop.names[2 + i], {n.dtype(loop.carried[i]), n.dims(loop.carried[i])}});
    body = n.parent().lower_body(source, parameters, diagnostics, prologue);
    if (!body) return std::nullopt;
    for (size_t i = 0; i < carried; ++i) {
      const Value& result = body->graph->value(body->graph->outputs[first + i]);
      if (result.dims != n.dims(loop.carried[i])) {
        loop.assumed = assumed_results(n, *body->graph, loop, first);
        diagnostics.refuse(
            n.node().name, n.node().op_type,
            fmt::format("carried value {} starts as {} and becomes {}: its shape must stay the same, or the "
                        "trip count be a constant of at most {}",
                        i, to_string(n.dims(loop.carried[i])), to_string(result.dims), kMostUnrolled));
        return std::nullopt;
      }
      if (result.dtype == n.dtype(loop.carried[i])) continue;
      const auto common = meet(n.parent().graph().value(loop.carried[i]), result);
      if (!common) {
        diagnostics.refuse(
            n.node().name, n.node().op_type,
            fmt::format("carried value {} starts as {} and becomes {}, which have no common type", i,
                        dtype_name(n.dtype(loop.carried[i])), dtype_name(result.dtype)));
        return std::nullopt;
      }
      // Where the start's type is the wider one, the body's result is cast to it below.
      if (*common == n.dtype(loop.carried[i])) continue;
      if (!again) n.parent().ledger().rewind(decided);
      loop.carried[i] = n.cast(loop.carried[i], *common);
      again = true;
    }
  }
  Graph& graph = *body->graph;
  Builder builder(graph);
  builder.set_origin({n.node().name, n.node().op_type});
  for (size_t i = 0; i < carried; ++i) {
    ValueId& result = graph.outputs[first + i];
    if (graph.value(result).dtype == n.dtype(loop.carried[i])) continue;
    std::vector<ValueId> cast;
    if (!builder.emit(CastAttrs{static_cast<int64_t>(n.dtype(loop.carried[i])), 1}, {result}, 1, &cast).ok())
      return std::nullopt;
    n.parent().ledger().add({graph.value(result).name,
                             n.node().name,
                             n.node().op_type,
                             graph.value(result).dtype,
                             n.dtype(loop.carried[i]),
                             "branch.edge",
                             "a carried value keeps the type that it starts with",
                             TypeEffect::kCast,
                             {}});
    result = cast[0];
  }
  if (body_gives_condition && graph.outputs[0] >= 0 && graph.value(graph.outputs[0]).dtype != DType::kBool) {
    std::vector<ValueId> truth;
    const DType before = graph.value(graph.outputs[0]).dtype;
    if (builder.emit(CastAttrs{static_cast<int64_t>(DType::kBool), 1}, {graph.outputs[0]}, 1, &truth).ok()) {
      n.parent().ledger().add({graph.value(graph.outputs[0]).name,
                               n.node().name,
                               n.node().op_type,
                               before,
                               DType::kBool,
                               "input.table",
                               "a truth value is wanted: what is not zero is true",
                               TypeEffect::kCast,
                               {}});
      graph.outputs[0] = truth[0];
    }
  }
  if (body_gives_condition && (element_count(graph.value(graph.outputs[0]).dims) != 1 ||
                               graph.value(graph.outputs[0]).dtype != DType::kBool)) {
    diagnostics.refuse(
        n.node().name, n.node().op_type,
        fmt::format("its body's condition is {}, not one truth",
                    to_string(graph.value(graph.outputs[0]).dtype, graph.value(graph.outputs[0]).dims)));
    return std::nullopt;
  }
  if (!body_gives_condition) graph.outputs.insert(graph.outputs.begin(), graph.inputs[1]);
  if (const ConstantPtr go = graph.value(graph.outputs[0]).constant; go && go->size() == 1)
    loop.exact |= loop.known_start && go->as_int64s()[0] != 0;
  std::vector<ValueFact> facts;
  for (size_t i = 1; i < graph.outputs.size(); ++i) {
    const Value& v = graph.value(graph.outputs[i]);
    if (!v.extents.empty()) {
      diagnostics.refuse(n.node().name, n.node().op_type,
                         "a result of its body has a length that depends on data");
      return std::nullopt;
    }
    Dims dims = v.dims;
    if (i > carried) dims.insert(dims.begin(), loop.max_trips);
    facts.push_back({v.dtype, dims});
  }
  facts.push_back({DType::kInt64, {}});
  separate_outputs(graph);
  std::vector<ValueId> operands{loop.trips, loop.condition};
  operands.insert(operands.end(), loop.carried.begin(), loop.carried.end());
  std::vector<ValueId> results = add_control(n, LoopAttrs{loop.max_trips, static_cast<int64_t>(carried)},
                                             operands, body->captures, {body->graph}, facts);
  const ValueId taken = results.back();
  results.pop_back();
  if (!loop.exact)
    for (size_t i = carried; i < results.size(); ++i)
      n.parent().graph().value(results[i]).extents = {{0, taken}};
  return results;
}

ValueId stack(NodeLowering& n, const std::vector<ValueId>& items) {
  std::vector<ValueId> parts;
  for (const ValueId v : items) parts.push_back(n.unsqueeze(v, 0));
  return joined(n, std::move(parts), 0);
}

bool finish(NodeLowering& n, const std::vector<ValueId>& results) {
  bool good = !results.empty();
  for (size_t i = 0; i < results.size() && i < n.output_count(); ++i)
    if (n.wants_output(i)) good &= n.output(i, results[i]);
  return good;
}

namespace {

// Runs the body up to `trips` times in the enclosing graph. nullopt: a condition is not known, or still true
// after so many trips although it `must_stop`.
std::optional<std::vector<ValueId>> unrolled_loop(NodeLowering& n, const ImportedGraph& source, int64_t trips,
                                                  bool must_stop, std::optional<bool> condition,
                                                  std::vector<ValueId> carried) {
  const size_t count = carried.size(), scans = source.outputs.size() - 1 - count;
  std::vector<std::vector<ValueId>> scanned(scans);
  bool go = condition.value_or(true);
  for (int64_t i = 0; i < trips && go; ++i) {
    std::vector<ValueId> parameters{n.add_constant(Constant::scalar_int(DType::kInt64, i)),
                                    n.add_constant(Constant::scalar_int(DType::kBool, 1))};
    parameters.insert(parameters.end(), carried.begin(), carried.end());
    const std::vector<ValueId> results = n.parent().inline_body(source, parameters);
    if (std::find(results.begin(), results.end(), kUnknown) != results.end()) return std::vector<ValueId>{};
    const auto next = known_truth(n, results[0]);
    if (!next) return std::nullopt;
    go = *next;
    for (size_t c = 0; c < count; ++c) carried[c] = results[1 + c];
    for (size_t s = 0; s < scans; ++s) scanned[s].push_back(results[1 + count + s]);
  }
  if (go && must_stop) return std::nullopt;
  std::vector<ValueId> out = carried;
  for (const auto& items : scanned) {
    if (items.empty()) {
      n.refuse("a scanned result of no iterations has no shape");
      return std::vector<ValueId>{};
    }
    out.push_back(stack(n, items));
  }
  return out;
}

// Loop-1 to 25. Sequences are carried by loops that are unrolled.
bool lower_loop(NodeLowering& n) {
  const ImportedGraph* source = n.attr_graph("body");
  if (source == nullptr) return n.refuse("has no body");
  for (size_t i = 0; i < n.input_count(); ++i)
    if (n.input(i) == kUnknown) return false;
  PlannedLoop loop;
  bool sequences = false;
  for (size_t i = 2; i < n.node().inputs.size(); ++i) {
    loop.carried.push_back(n.input(i));
    sequences |= is_sequence(loop.carried.back());
  }
  if (source->inputs.size() != 2 + loop.carried.size() || source->outputs.size() < 1 + loop.carried.size())
    return n.refuse_shapes("its body takes {} values and gives {}, which does not fit {} carried values",
                           source->inputs.size(), source->outputs.size(), loop.carried.size());
  for (const ImportedValueInfo& in : source->inputs) loop.names.push_back(in.name);

  std::optional<int64_t> trips;
  if (n.has_input(0) && n.constant(n.input(0))) {
    const auto given = n.constant_int(0);
    if (!given) return false;
    trips = std::max<int64_t>(0, *given);
  }
  const auto bound = n.parent().options().max_trips.find(n.node().name);
  const bool bounded = bound != n.parent().options().max_trips.end();
  std::optional<bool> condition = n.has_input(1) ? known_truth(n, n.input(1)) : std::optional<bool>(true);
  if (condition == false) trips = 0;
  bool all_constant = trips.has_value() && condition.has_value();
  for (const ValueId v : loop.carried) all_constant &= n.constant(v) != nullptr;
  // Filed without ending this node as n.refuse() does: a trial goes on behind it.
  const auto refuse_unbounded = [&] {
    n.parent().diagnostics().refuse(
        n.node().name, n.node().op_type, "its trip count is not known at conversion",
        fmt::format("give the most that it can make with --max-trips {}=N", n.node().name));
    return false;
  };
  const int64_t most = all_constant || sequences ? kMostFolded : kMostUnrolled;
  Diagnostics trial;
  // A number of trips beyond `most` (exporters write the largest there is) may yet be cut short.
  const bool stops = condition && (!trips || *trips > most) && !never_stops(*source) &&
                     condition_folds(n, *source, loop.carried);
  const bool unrolls = (all_constant && *trips <= kMostFolded) || sequences || (!trips && !bounded && stops);
  if (!unrolls) {
    const int64_t assumed = n.parent().options().assumed;
    if (!trips && !bounded) {
      refuse_unbounded();
      if (assumed == 0) return false;
    }
    loop.max_trips = trips ? *trips : bounded ? bound->second : assumed;
    if (!trips) loop.trips = n.has_input(0) ? n.reshape(n.cast(n.input(0), DType::kInt64), {}) : kAbsent;
    if (trips) loop.trips = n.add_constant(Constant::scalar_int(DType::kInt64, *trips));
    if (n.has_input(1) && !condition) {
      if (n.size(n.input(1)) != 1)
        return n.refuse("the condition has {} elements, not one", n.size(n.input(1)));
      loop.condition = n.reshape(n.cast(n.input(1), DType::kBool), {});
    }
    // A body whose condition is the constant true, or the one it was given, never stops early.
    loop.known_start = trips.has_value() && condition.has_value();
    loop.exact = loop.known_start && never_stops(*source);
    if (auto results = planned_loop(n, *source, loop, trial, {}, true)) {
      for (const Diagnostic& d : trial.all()) n.parent().diagnostics().add(d);  // warnings of its body
      return finish(n, *results);
    }
  }
  if (condition && ((trips && *trips <= most) || stops))
    if (const auto results = unrolled_loop(n, *source, std::min(trips.value_or(most), most),
                                           !trips || *trips > most, condition, loop.carried))
      return finish(n, *results);
  const auto advice = [&] {
    return n.parent().fixing_advice(!trips && n.has_input(0) ? n.input(0) : n.input(1));
  };
  if (sequences)
    return n.refuse_advising(
        advice(), "carries a sequence, which takes a number of trips that is known at conversion, at most {}",
        most);
  if (unrolls && !trips && !bounded) return refuse_unbounded();
  for (const Diagnostic& d : trial.all()) n.parent().diagnostics().add(d);
  if (!loop.assumed.empty()) {  // refused above; a trial goes on behind it
    std::vector<ValueId> results;
    for (const ValueFact& f : loop.assumed)
      results.push_back(n.parent().graph().add_value({}, f.dtype, f.dims));
    return finish(n, results);
  }
  return n.refuse("can be neither planned nor unrolled");
}

}  // namespace

std::span<const LowerRule> control_rules() {
  static constexpr LowerRule kRules[] = {{"If", lower_if, "", 28, true},
                                         {"Loop", lower_loop, "", 28, true, true}};
  return kRules;
}

}  // namespace sinter::convert
