// The functions of the passes, for the list of passes and for tests of one of them.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

#define SINTER_PASS(function, name, description) int function(Graph& graph);
#include "converter/passes/passes.def"

// Parts of a pass that are files of their own, beside the pass that runs them. Each returns the number of
// changes.
int recognise_row_writes(Graph& graph);   // recognise-writes
int recognise_group_norms(Graph& graph);  // recognise-norms
int raise_attention(Graph& graph);        // recognise-attention
int limit_to_live_keys(Graph& graph);
int recognise_pair_rope(Graph& graph);  // recognise-rope
int join_passed(Graph& graph);
void nest_halves(Graph& graph);
int recognise_expert_loops(Graph& graph);  // recognise-experts
int recognise_dense_experts(Graph& graph);
int recognise_any_low_bit(Graph& graph);  // recognise-low-bit, of weights of any size
int simplify_transposes(Graph& graph);    // layout

}  // namespace sinter::convert
