// A part of recognise-attention.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Attention whose heads are the first of three axes, as torch.bmm computes it, with values that are a view of
// some with a batch of 1: its products, its softmax and what is between them get a first axis of 1, so that
// they read values of rank 4 as they are. Returns the count of changes.
int lift_attention(Graph& graph);

}  // namespace sinter::convert
