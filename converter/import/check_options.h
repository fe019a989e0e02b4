// Checks what the command line states about a model's inputs, dimensions, values and loops against the model.
#pragma once

#include "converter/import/lower.h"

namespace sinter::convert {

// Calls `visit` with the graph and every branch and loop body in it.
template <class Visit>
void each_graph(const ImportedGraph& graph, const Visit& visit) {
  visit(graph);
  for (const ImportedNode& node : graph.nodes)
    for (const ImportedAttribute& a : node.attributes)
      for (const auto& body : a.graphs) each_graph(*body, visit);
}

// Refuses names that the model does not have and sizes that contradict each other; warns of sizes of 0.
void check_options(const ImportedModel& model, const LoweringOptions& options, Diagnostics& diagnostics);

}  // namespace sinter::convert
