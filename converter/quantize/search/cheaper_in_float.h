// Where integers would cost more time than they save, rounding at the borders of integer regions included.
#pragma once

#include "converter/quantize/integers/insert_quantizers.h"

namespace sinter::convert {

// Returns the cost of one run with these roles, and 16 bits for these values, in node_cost.h's unit.
double placement_cost(Cpu cpu, const Graph& graph, const std::vector<Role>& roles,
                      const std::vector<ValueId>& wide = {});

// The operations that make the whole cheapest by staying float (minimum cut), with Reason::kSlower. Those
// that could not be integer anyway, with `left` as it is, are not listed.
LeftMap slower_on_integers(const Graph& graph, const LeftMap& left);

}  // namespace sinter::convert
