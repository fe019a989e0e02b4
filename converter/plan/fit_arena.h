// An arena of limited size: the steps that need more are computed in stripes of rows (stripes.h), at
// the price of rows that are computed twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/plan/planner.h"

namespace sinter::convert {

// Steps that are computed together, stripe by stripe.
struct StripedSteps {
  std::string first, last;  // names of the nodes
  size_t steps = 0;
  int64_t parts = 0;
};

struct FittedPlan {
  PlannedModel model;
  bool fits = false;  // within the limit; else the arena is the smallest that was found
  std::vector<StripedSteps> stripes;
  double extra_work = 0;  // multiply-adds beyond those of the whole steps, as a share of them
  std::string fullest;    // where it does not fit: the node that needs the most
};

// The least work that was found to fit, not the minimum: the fullest step is mended first, by the
// cheapest region around it that suffices. `limit`: bytes, padding included.
FittedPlan plan_to_fit(const Graph& graph, const PlanOptions& options, uint64_t limit);

}  // namespace sinter::convert
