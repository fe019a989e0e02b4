// Which convolutions may be computed by Winograd's algorithm, and on tiles of what size.
#pragma once

#include "converter/plan/planner.h"

namespace sinter::convert {

// A tile is taken only if its error is at most this many times that of direct sums (winograd_error.h).
inline constexpr double kMostWinogradError = 4;

// Sets the attribute `winograd` of each float32 Conv with constant weights that takes less time so by the
// tables of costs, on a platform of `options` that computes so, with an error within the limit: the tile that
// takes least. Bodies too. Not those with many weights that are narrow in the file (narrow_weights.h).
// Returns the number of those convolutions.
int choose_winograd(Graph& graph, const PlanOptions& options);

}  // namespace sinter::convert
