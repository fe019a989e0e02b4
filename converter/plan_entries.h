// Plans of a conversion: of every shape set, for one target.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/convert.h"

namespace sinter::convert {

// A shape set on its way through the stages.
struct Entry {
  std::string shapes;  // as given; empty where the conversion has only one
  Graph graph;
};

// The platforms named by --backends. Without names all but those on request, which are taken where they
// compute in the preferred type, and for this machine's own plan where this program has them.
std::vector<const Platform*> platforms_to_plan(const Target& target, const ConversionOptions& options);

// The number of steps of the first entry, with those of its bodies.
size_t step_count(const PlannedModel& plan);

// The plan of all entries, with the states of all at the same places. nullopt: one of them does not fit
// --max-arena, or a state cannot be shared; report.withheld states it.
// `graph_of`: the graph of an entry, to be planned. `first_target`: the report describes this plan.
std::optional<PlannedModel> plan_entries(const Target& target, const std::vector<Entry>& entries,
                                         const std::function<std::shared_ptr<Graph>(size_t)>& graph_of,
                                         bool first_target, const ConversionOptions& options,
                                         ConversionReport& report);

}  // namespace sinter::convert
