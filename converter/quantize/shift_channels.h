// Constant parts of channels: out of what is rounded, into the biases of what reads it.
//
// A channel that is 80 give or take 1 makes the range of its tensor ten times as wide as its neighbours need.
// Where a value comes from products and normalizations through sums, movement and averages, and goes to
// products that pad nothing, every channel's mean can be taken off on one side and added on the other. The
// graph computes what it did, but for float rounding.
#pragma once

#include "converter/quantize/observe.h"

namespace sinter::convert {

// `seen` must hold the values of this graph with numbers per channel; void then. Streams (values that have to
// be shifted together) whose ranges become hardly narrower stay. Returns the count of values that were
// shifted.
int shift_channels(Graph& graph, const Observations& seen);

}  // namespace sinter::convert
