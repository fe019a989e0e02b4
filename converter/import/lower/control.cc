// Control flow: If and Loop (Scan: scan.cc). What is known at conversion is folded or unrolled; the rest
// becomes a planned body.
#include "converter/import/lower/control.h"

#include <algorithm>
#include <set>

#include "converter/import/bounded.h"
#include "converter/import/lower/common.h"
#include "converter/ir/dims.h"
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
  if (const ConstantPtr c = n.constant(v)) {
    if (c->size() != 1) return std::nullopt;
    if (const auto fraction = fraction_as_truth(*c))
      n.warn("the condition is {}; what is not zero is true", *fraction);
    return c->as_doubles()[0] != 0;
  }
  // A question about lengths whose answer is proven.
  const auto items = n.parent().lengths().known_items(v);
  return items && items->size() == 1 ? std::optional(items->front() != 0) : std::nullopt;
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
  const std::vector<ValueId> captures = merge_captures(*then, *otherwise, graph_of(n));
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

// ---- Loop

// What the loop would give if its carried values could grow: the trial's size stands where shapes differ.
std::vector<ValueFact> assumed_results(NodeLowering& n, const Graph& body, const PlannedLoop& loop,
                                       size_t first) {
  const int64_t size = n.parent().options().assumed;
  std::vector<ValueFact> facts;
  for (size_t i = first; i < body.outputs.size() && size > 0; ++i) {
    if (body.outputs[i] < 0) return {};  // refused in the body
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

// A carried value as the plan holds it: its maximum, and the axes whose length is carried beside it.
struct CarriedShape {
  Dims dims;
  std::set<int> open, grown;
};

// Fits the shape to what the body gives; false: the body must be lowered again.
bool settle_carried(NodeLowering& n, const PlannedLoop& loop, const Value& result, CarriedShape* shape) {
  bool settled = true;
  for (size_t i = 0; i < shape->dims.size(); ++i) {
    const auto axis = static_cast<int>(i);
    const bool bounded = std::any_of(result.extents.begin(), result.extents.end(),
                                     [&](const auto& e) { return e.first == axis; });
    const int64_t growth = result.dims[i] - shape->dims[i];
    if ((growth != 0 || bounded) && shape->open.insert(axis).second) settled = false;
    if (growth <= 0 || !shape->grown.insert(axis).second) continue;
    const auto& bounds = n.parent().options().bounds;
    const auto bound = bounds.find(n.node().name);
    int64_t whole = 0;
    if (bound != bounds.end())
      whole = std::max(bound->second, shape->dims[i]);
    else if (__builtin_mul_overflow(loop.max_trips, growth, &whole) ||
             __builtin_add_overflow(whole, shape->dims[i], &whole))
      whole = Lengths::kNoMaximum;
    shape->dims[i] = whole;
    settled = false;
  }
  return settled;
}

// Gives a body's carried result the planned dims; its lengths along the open axes go to `lengths`. Where it
// may grow, the length is held within the plan and the largest so far, which `peaks` begins with, is kept.
bool hold_carried(NodeLowering& n, Graph& graph, ValueId* result, const CarriedShape& shape,
                  std::vector<ValueId>* lengths, std::vector<ValueId>::iterator* peaks) {
  Builder builder(graph);
  const Value v = graph.value(*result);
  builder.set_origin({n.node().name, n.node().op_type});
  const auto number = [&](int64_t x) { return graph.add_constant(Constant::scalar_int(DType::kInt64, x)); };
  const auto emit = [&](OpAttrs attrs, std::vector<ValueId> inputs) {
    std::vector<ValueId> out;
    return builder.emit(std::move(attrs), std::move(inputs), 1, &out).ok() ? out[0] : kUnknown;
  };
  for (const int axis : shape.open) {
    const auto i = static_cast<size_t>(axis);
    const auto own =
        std::find_if(v.extents.begin(), v.extents.end(), [&](const auto& e) { return e.first == axis; });
    ValueId length = own != v.extents.end() ? own->second : number(v.dims[i]);
    if (shape.grown.count(axis) != 0) {
      **peaks = emit(MaxAttrs{}, {**peaks, length});
      length = emit(MinAttrs{}, {length, number(shape.dims[i])});
      if (**peaks < 0) return false;
      ++*peaks;
    }
    if (length < 0) return false;
    lengths->push_back(length);
  }
  SliceAttrs slice;
  PadAttrs pad;
  for (size_t i = 0; i < v.dims.size(); ++i)
    slice.starts.push(0), slice.steps.push(1), slice.sizes.push(std::min(v.dims[i], shape.dims[i])),
        pad.pads.push(0);
  for (size_t i = 0; i < v.dims.size(); ++i) pad.pads.push(std::max<int64_t>(shape.dims[i] - v.dims[i], 0));
  for (const OpAttrs& attrs : {OpAttrs(slice), OpAttrs(pad)}) {
    if (graph.value(*result).dims == shape.dims) break;
    std::vector<ValueId> out;
    if (!builder.emit(attrs, {*result}, 1, &out).ok()) return false;
    *result = out[0];
  }
  return true;
}

}  // namespace

std::optional<std::vector<ValueId>> planned_loop(NodeLowering& n, const ImportedGraph& source,
                                                 PlannedLoop& loop, Diagnostics& diagnostics,
                                                 const GraphLowering::Prologue& prologue,
                                                 bool body_gives_condition) {
  const size_t carried = loop.carried.size(), first = body_gives_condition ? 1 : 0;
  std::optional<LoweredBody> body;
  std::vector<CarriedShape> shapes;
  for (const ValueId v : loop.carried) {
    if (v < 0) return std::nullopt;  // refused before
    shapes.push_back({n.dims(v), {}, {}});
    for (const auto& [axis, length] : graph_of(n).value(v).extents) shapes.back().open.insert(axis);
  }
  // Types and lengths only ever widen, so this ends.
  for (bool again = true; again;) {
    again = false;
    const size_t decided = n.parent().ledger().size();
    std::vector<GraphLowering::Parameter> parameters{{loop.names[0], {DType::kInt64, {}}},
                                                     {loop.names[1], {DType::kBool, {}}}};
    for (size_t i = 0; i < carried; ++i)
      parameters.push_back({loop.names[2 + i], {n.dtype(loop.carried[i]), shapes[i].dims}});
    for (const CarriedShape& shape : shapes)
      for (size_t k = 0; k < shape.open.size() + shape.grown.size(); ++k)
        parameters.push_back({{}, {DType::kInt64, {}}});
    body = n.parent().lower_body(source, parameters, diagnostics, [&](GraphLowering& inner) {
      size_t next = 2 + carried;
      for (size_t i = 0; i < carried; ++i)
        for (const int axis : shapes[i].open) {
          const ValueId length = inner.graph().inputs[next++];
          inner.lengths().symbol(length, {0, shapes[i].dims[static_cast<size_t>(axis)]});
          inner.graph().value(inner.graph().inputs[2 + i]).extents.emplace_back(axis, length);
        }
      if (prologue) prologue(inner);
    });
    if (!body) return std::nullopt;
    const auto lower_again = [&] {
      if (!again) n.parent().ledger().rewind(decided);
      again = true;
    };
    for (size_t i = 0; i < carried; ++i) {
      const Value& result = body->graph->value(body->graph->outputs[first + i]);
      if (result.dims.size() != shapes[i].dims.size() ||
          (!loop.may_grow && result.dims != shapes[i].dims && shapes[i].open.empty())) {
        loop.assumed = assumed_results(n, *body->graph, loop, first);
        diagnostics.refuse(
            n.node().name, n.node().op_type,
            fmt::format("carried value {} starts as {} and becomes {}: its shape must stay the same, or the "
                        "trip count be a constant of at most {}",
                        i, to_string(n.dims(loop.carried[i])), to_string(result.dims), kMostUnrolled));
        return std::nullopt;
      }
      if (!settle_carried(n, loop, result, &shapes[i])) lower_again();
      if (!plausible_dims(result.dtype, shapes[i].dims)) {
        diagnostics.refuse(
            n.node().name, n.node().op_type,
            fmt::format("carried value {} grows by every trip, and {} trips are too many", i, loop.max_trips),
            fmt::format("give the maximum of its length with --bound {}=N", n.node().name));
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
      lower_again();
      loop.carried[i] = n.cast(loop.carried[i], *common);
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
    graph.value(cast[0]).extents = graph.value(result).extents;
    result = cast[0];
  }
  size_t open = 0, growing = 0;
  for (const CarriedShape& shape : shapes) open += shape.open.size(), growing += shape.grown.size();
  const auto first_peak = graph.inputs.begin() + static_cast<ptrdiff_t>(2 + carried + open);
  std::vector<ValueId> lengths, peaks(first_peak, first_peak + static_cast<ptrdiff_t>(growing));
  auto peak = peaks.begin();
  for (size_t i = 0; i < carried; ++i)
    if (!hold_carried(n, graph, &graph.outputs[first + i], shapes[i], &lengths, &peak)) return std::nullopt;
  lengths.insert(lengths.end(), peaks.begin(), peaks.end());
  graph.outputs.insert(graph.outputs.begin() + static_cast<ptrdiff_t>(first + carried), lengths.begin(),
                       lengths.end());
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
  const size_t held = carried + lengths.size();
  for (size_t i = 1; i < graph.outputs.size(); ++i) {
    const Value& v = graph.value(graph.outputs[i]);
    if (i > held && !v.extents.empty()) {
      const auto axis = static_cast<size_t>(v.extents[0].first);
      diagnostics.refuse(
          n.node().name, n.node().op_type,
          fmt::format("result {} of its body is collected over all trips, but its dimension {} is "
                      "bounded (at most {})",
                      i - lengths.size(), axis, v.dims[axis]));
      return std::nullopt;
    }
    Dims dims = v.dims;
    if (i > held) dims.insert(dims.begin(), loop.max_trips);
    facts.push_back({v.dtype, dims});
  }
  facts.push_back({DType::kInt64, {}});
  separate_outputs(graph);
  std::vector<ValueId> operands{loop.trips, loop.condition};
  Bounded b(n);
  for (size_t i = 0; i < carried; ++i) {
    PadAttrs pad;
    const Dims dims = n.dims(loop.carried[i]);
    for (size_t axis = 0; axis < dims.size(); ++axis) pad.pads.push(0);
    for (size_t axis = 0; axis < dims.size(); ++axis) pad.pads.push(shapes[i].dims[axis] - dims[axis]);
    operands.push_back(dims == shapes[i].dims ? loop.carried[i] : b.emit(pad, {loop.carried[i]}));
  }
  for (size_t i = 0; i < carried; ++i)
    for (const int axis : shapes[i].open)
      operands.push_back(b.lengths().value(b.lengths().of_axis(loop.carried[i], axis)));
  operands.insert(operands.end(), growing, n.add_constant(Constant::scalar_int(DType::kInt64, 0)));
  std::vector<ValueId> results = add_control(n, LoopAttrs{loop.max_trips, static_cast<int64_t>(held)},
                                             operands, body->captures, {body->graph}, facts);
  const ValueId taken = results.back();
  results.pop_back();
  size_t next = carried, next_peak = carried + open;
  for (size_t i = 0; i < carried; ++i) {
    std::vector<LengthId> all = b.of_axes(results[i]);
    for (const int axis : shapes[i].open) {
      const int64_t dim = shapes[i].dims[static_cast<size_t>(axis)];
      LengthId& length = all[static_cast<size_t>(axis)];
      length = b.lengths().symbol(results[next++], {0, dim});
      if (shapes[i].grown.count(axis) == 0) continue;
      const LengthId most = b.lengths().symbol(results[next_peak++], {0, Lengths::kNoMaximum});
      length =
          b.held_within(length, most, dim,
                        fmt::format("a carried value has more elements than are planned, give --bound {}=N",
                                    n.node().name));
    }
    results[i] = b.with_lengths(results[i], all);
  }
  results.erase(results.begin() + static_cast<ptrdiff_t>(carried),
                results.begin() + static_cast<ptrdiff_t>(held));
  for (size_t i = carried; i < results.size() && !loop.exact; ++i)
    results[i] = bounded(n, results[i], 0, taken);
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
  if (n.has_input(0) && (n.constant(n.input(0)) || n.parent().lengths().known_items(n.input(0)))) {
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
  // A number of trips that depends on data may have a maximum.
  const auto count = n.has_input(0) ? n.parent().lengths().items(n.input(0)) : std::nullopt;
  const bool known_most = !trips && count && count->size() == 1 &&
                          n.parent().lengths().high(count->front()) < Lengths::kNoMaximum;
  // A number of trips beyond `most` (exporters write the largest there is) may yet be cut short.
  const bool stops = condition && (!trips || *trips > most) && !never_stops(*source) &&
                     condition_folds(n, *source, loop.carried);
  const bool unrolls =
      (all_constant && *trips <= kMostFolded) || sequences || (!trips && !bounded && !known_most && stops);
  if (!unrolls) {
    const int64_t assumed = n.parent().options().assumed;
    if (!trips && !bounded && !known_most) {
      refuse_unbounded();
      if (assumed == 0) return false;
    }
    loop.max_trips = trips        ? *trips
                     : bounded    ? bound->second
                     : known_most ? std::max<int64_t>(0, n.parent().lengths().high(count->front()))
                                  : assumed;
    loop.may_grow = !(trips && *trips <= kMostUnrolled && condition);
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
