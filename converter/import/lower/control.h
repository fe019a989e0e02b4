// What Loop and Scan share: a loop whose body is planned once for all iterations.
#pragma once

#include "converter/import/lower.h"

namespace sinter::convert {

struct PlannedLoop {
  ValueId trips = kAbsent, condition = kAbsent;
  int64_t max_trips = 0;
  bool exact = false;              // runs exactly max_trips times
  bool known_start = false;        // ... if the body never says stop
  bool may_grow = false;           // carried values may have other lengths from trip to trip
  std::vector<ValueId> carried;    // initial values
  std::vector<std::string> names;  // of the body's parameters: iteration, condition, carried
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
// What a Loop's body says about its condition. That its result is the condition that it was given, or the
// constant true:
bool never_stops(const ImportedGraph& body);
// That it is known in every trip: it follows from constants, the trip's number, shapes and lengths, and
// carried values that start as constants and stay ones.
bool condition_folds(NodeLowering& n, const ImportedGraph& body, const std::vector<ValueId>& carried);
// Stacks one value per iteration along a new first axis.
ValueId stack(NodeLowering& n, const std::vector<ValueId>& items);
// The node's results are these, as far as they are wanted; false if one is unknown.
bool finish(NodeLowering& n, const std::vector<ValueId>& results);

}  // namespace sinter::convert
