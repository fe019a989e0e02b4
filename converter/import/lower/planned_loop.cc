// A loop whose body is planned once for all trips, with the largest shapes that its carried values reach.
#include <algorithm>
#include <set>

#include "converter/import/lengths/bounded.h"
#include "converter/import/lower/common.h"
#include "converter/import/lower/control.h"
#include "converter/import/lower/stack.h"
#include "converter/ir/dims.h"
#include "converter/types/branch_edge.h"

namespace sinter::convert {
namespace {

// The loop's results if its carried values could grow, with the trial's size where shapes differ.
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
  std::vector<std::optional<int64_t>> given;  // what the body gives, as far as it is expected
  // The size along an open axis if every trip is expected to keep it.
  std::optional<int64_t> expected(int axis) const {
    const auto at = static_cast<size_t>(axis);
    return at < given.size() && given[at] == dims[at] ? given[at] : std::nullopt;
  }
};

// Fits the shape to what the body gives; false: the body must be lowered again.
bool settle_carried(NodeLowering& n, const PlannedLoop& loop, const Value& result, CarriedShape* shape) {
  bool settled = true;
  for (size_t i = 0; i < shape->dims.size(); ++i) {
    const auto axis = static_cast<int>(i);
    const bool bounded = std::any_of(result.bounded_dims.begin(), result.bounded_dims.end(),
                                     [&](const auto& e) { return e.axis == axis; });
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
    const auto own = std::find_if(v.bounded_dims.begin(), v.bounded_dims.end(),
                                  [&](const auto& e) { return e.axis == axis; });
    ValueId length = own != v.bounded_dims.end() ? own->length : number(v.dims[i]);
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
    shapes.push_back({n.dims(v), {}, {}, {}});
    for (const auto& [axis, length] : n.parent().graph().value(v).bounded_dims)
      shapes.back().open.insert(axis);
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
    body = n.parent().lower_body(
        source, parameters, diagnostics,
        [&](GraphLowering& inner) {
          size_t next = 2 + carried;
          for (size_t i = 0; i < carried; ++i)
            for (const int axis : shapes[i].open) {
              const ValueId length = inner.graph().inputs[next++];
              const LengthId symbol =
                  inner.lengths().symbol(length, {0, shapes[i].dims[static_cast<size_t>(axis)]});
              if (const auto size = shapes[i].expected(axis)) inner.lengths().expect_size(symbol, *size);
              inner.graph().value(inner.graph().inputs[2 + i]).bounded_dims.push_back({axis, length});
            }
          for (size_t i = 0; i < loop.stacked.size(); ++i)
            if (loop.stacked[i])
              inner.define(loop.names[2 + i], inner.add_stack(inner.graph().inputs[2 + i]));
          if (prologue) prologue(inner);
        },
        [&](GraphLowering& inner) {
          ImportedNode owner;
          owner.name = n.node().name, owner.op_type = n.node().op_type;
          NodeLowering end(inner, owner);
          for (size_t i = 0; i < loop.stacked.size(); ++i)
            if (loop.stacked[i]) to_stack(end, &inner.graph().outputs[first + i], n.dims(loop.carried[i]));
          for (size_t i = 0; i < carried; ++i)
            shapes[i].given = expected_dims(inner, inner.graph().outputs[first + i]);
          // Results collected over all trips have one size.
          for (size_t i = first + carried; i < inner.graph().outputs.size(); ++i)
            inner.graph().outputs[i] = Bounded(end).fixed(inner.graph().outputs[i]);
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
                        "trip count must be a constant of at most {}",
                        i, to_string(n.dims(loop.carried[i])), to_string(result.dims), kMostUnrolled));
        return std::nullopt;
      }
      if (!settle_carried(n, loop, result, &shapes[i])) lower_again();
      const bool too_long = std::any_of(shapes[i].grown.begin(), shapes[i].grown.end(), [&](int axis) {
        return shapes[i].dims[static_cast<size_t>(axis)] > kLongestAxis;
      });
      if (too_long || !plausible_dims(result.dtype, shapes[i].dims)) {
        loop.assumed = assumed_results(n, *body->graph, loop, first);
        diagnostics.refuse(
            n.node().name, n.node().op_type,
            fmt::format("carried value {} grows in each of at most {} trips, which is too large to plan", i,
                        loop.max_trips),
            fmt::format("give the maximum of its length with --bound {}=N", n.node().name));
        return std::nullopt;
      }
      if (result.dtype == n.dtype(loop.carried[i])) continue;
      // Read in the body, or behind the loop.
      for (const std::string& name :
           {loop.names[2 + i], i < n.node().outputs.size() ? n.node().outputs[i] : ""})
        if (refuse_mixed_index(n, n.dtype(loop.carried[i]), "at first", result.dtype, "after a trip", name,
                               name == loop.names[2 + i] ? &source : nullptr))
          return std::nullopt;
      const auto common = meet_at_edge(n.parent().graph().value(loop.carried[i]), result);
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
      loop.carried[i] = n.cast(loop.carried[i], *common, TypeRule::kBranchEdge,
                               "the body gives this type to what it carries");
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
    n.record(graph.value(result).name, graph.value(result).dtype, n.dtype(loop.carried[i]),
             TypeRule::kBranchEdge, "a carried value keeps the type that it starts with", TypeEffect::kCast);
    graph.value(cast[0]).bounded_dims = graph.value(result).bounded_dims;
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
    warn_of_fraction(n, "its body's condition", graph, graph.outputs[0]);
    std::vector<ValueId> truth;
    const DType before = graph.value(graph.outputs[0]).dtype;
    if (builder.emit(CastAttrs{static_cast<int64_t>(DType::kBool), 1}, {graph.outputs[0]}, 1, &truth).ok()) {
      n.record(graph.value(graph.outputs[0]).name, before, DType::kBool, TypeRule::kInputTable,
               "a truth value is required: every number but zero is true", TypeEffect::kCast);
      graph.outputs[0] = truth[0];
    }
  }
  if (body_gives_condition && (element_count(graph.value(graph.outputs[0]).dims) != 1 ||
                               graph.value(graph.outputs[0]).dtype != DType::kBool)) {
    diagnostics.refuse(
        n.node().name, n.node().op_type,
        fmt::format("its body's condition is {}, not a single truth value",
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
    if (i > held && !v.bounded_dims.empty()) {
      const auto axis = static_cast<size_t>(v.bounded_dims[0].axis);
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
  operands.insert(operands.end(), growing, n.int64(0));
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
      if (const auto size = shapes[i].expected(axis)) b.lengths().expect_size(length, *size);
      if (shapes[i].grown.count(axis) == 0) continue;
      const LengthId most = b.lengths().symbol(results[next_peak++], {0, Lengths::kNoMaximum});
      length = b.held_to_plan(length, most, dim);
    }
    results[i] = b.with_lengths(results[i], all);
    if (i < loop.stacked.size() && loop.stacked[i]) results[i] = n.parent().add_stack(results[i]);
  }
  results.erase(results.begin() + static_cast<ptrdiff_t>(carried),
                results.begin() + static_cast<ptrdiff_t>(held));
  for (size_t i = carried; i < results.size() && !loop.exact; ++i)
    results[i] = bounded(n, results[i], 0, taken);
  return results;
}

}  // namespace sinter::convert
