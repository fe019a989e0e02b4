// Common parts of If, Loop and Scan: nodes that own bodies, and a loop whose body is planned once for all
// iterations.
#pragma once

#include "converter/import/lower.h"

namespace sinter::convert {

// Iterations that may be unrolled where a body cannot be planned once for all of them.
inline constexpr int64_t kMostUnrolled = 256;

// Appends a control node; its captured operands follow the given ones. Gives its results.
std::vector<ValueId> add_control(NodeLowering& n, OpAttrs attrs, std::vector<ValueId> operands,
                                 const std::vector<ValueId>& captures,
                                 std::vector<std::shared_ptr<Graph>> bodies,
                                 const std::vector<ValueFact>& results);
// The single truth that a condition is known to be, or nothing.
std::optional<bool> known_truth(NodeLowering& n, ValueId v);
// Truth values and fractions that take each other's place, as results of branches or from trip to trip, make
// no index: refuses the node where the value `name`, of the graph that has the node or of `body`, is read as
// one. `first` and `second` are the types' places, "in one branch".
bool refuse_mixed_index(NodeLowering& n, DType a, std::string_view first, DType b, std::string_view second,
                        const std::string& name, const ImportedGraph* body = nullptr);
// Warns of a condition that may be a fraction. `what` names it.
void warn_of_fraction(NodeLowering& n, std::string_view what, const Graph& graph, ValueId condition);
// The sizes that a value's axes have, or are expected to have (Lengths::expected).
std::vector<std::optional<int64_t>> expected_dims(GraphLowering& graph, ValueId v);

struct PlannedLoop {
  ValueId trips = kAbsent, condition = kAbsent;
  int64_t max_trips = 0;
  bool exact = false;              // runs exactly max_trips times
  bool known_start = false;        // ... if the body never stops the loop
  bool may_grow = false;           // carried values may have other lengths from trip to trip
  std::vector<ValueId> carried;    // initial values
  std::vector<std::string> names;  // of the body's parameters: iteration, condition, carried
  std::vector<bool> stacked;       // carried values that are stacks of sequences; empty: none are
  // In a trial (LoweringOptions::assumed): what the results would be, had a carried value not changed its
  // shape.
  std::vector<ValueFact> assumed;
};

// Tries to plan the body with carried types as they start, widening dtypes until they stay the same. Empty:
// it cannot (reasons in `diagnostics`). Results: carried finals, then scanned values.
std::optional<std::vector<ValueId>> planned_loop(NodeLowering& n, const ImportedGraph& source,
                                                 PlannedLoop& loop, Diagnostics& diagnostics,
                                                 const GraphLowering::Prologue& prologue,
                                                 bool body_gives_condition);
// Replaces carried sequences by stacks (stack.h), so that the loop can be planned. False: refused.
bool stack_carried(NodeLowering& n, const ImportedGraph& source, PlannedLoop* loop);
// The facts about a Loop's condition that follow from its body. That its result is the condition that it was
// given, or the constant true:
bool never_stops(const ImportedGraph& body);
// That it is known in every trip: it follows from constants, the trip's number, shapes and lengths, and
// carried values that start as constants and stay ones.
bool condition_folds(NodeLowering& n, const ImportedGraph& body, const std::vector<ValueId>& carried);
// Stacks one value per iteration along a new first axis.
ValueId stack(NodeLowering& n, const std::vector<ValueId>& items);
// The node's results are these, as far as they are used; false if one is unknown.
bool give_results(NodeLowering& n, const std::vector<ValueId>& results);

}  // namespace sinter::convert
