// Scores beside sinks: softmax(Concat(scores, sinks)) without its last column.
#pragma once

#include <optional>

#include "converter/passes/editor.h"

namespace sinter::convert {

struct BesideSinks {
  ValueId scores = kAbsent;  // [B, H, M, N]
  ValueId sinks = kAbsent;   // broadcast to [B, H, M, 1]
  int64_t heads = 0;
};
// Returns the scores and sinks that weights [B, H, M, N] of N keys come from, where `length` keys exist
// (kAbsent: all); nullopt: the weights are something else.
std::optional<BesideSinks> scores_beside_sinks(Editor& e, ValueId weights, ValueId length);
// Returns the sinks as [H], inserted before node n; kAbsent: those of a head differ.
ValueId sinks_of_heads(Editor& e, int n, const BesideSinks& s);

}  // namespace sinter::convert
