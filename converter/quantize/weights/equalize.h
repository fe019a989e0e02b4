// Scales of channels that change what a float graph is rounded with, and not what it computes.
//
// A channel's scale is free wherever all that makes it can be divided and all that reads it multiplied: rows
// and biases of products, scale and bias of normalizations on one side, columns of products on the other, and
// between them whatever gives s * y for s * x (channel_scales.h has the list). The best graph for rounding
// has channels that fill the range of their tensor, and columns of weights that fill the range of their row.
//
// Clamps stay as they are: channels keep a scale that what was seen of them stays inside both bounds with a
// margin, and those that were seen at a bound keep theirs. On samples like the ones that were seen the result
// is the same but for float rounding; beyond these a channel meets its bound earlier, about where int8 would
// end anyway.
//
// `seen` must hold the values of this graph with numbers per channel; values that are not there keep their
// scales where it matters. Every function returns the number of channel groups (channels that share a scale)
// that it rescaled; `seen` is void then.
#pragma once

#include "converter/quantize/ranges/observe.h"

namespace sinter::convert {

// All channels between products, by how much noise int8 is expected to make at their readers; groups that
// would gain nothing stay.
int equalize(Graph& graph, const Observations& seen);

// Only channels that depthwise convolutions alone read: these take any scale without loss, for each has a
// step of its own.
int scale_before_depthwise(Graph& graph, const Observations& seen);

// Channels that fully connected layers read: outliers go from the activations into the weights, all of them
// for alpha = 1, none for 0 (then columns of weights are made equal).
int smooth(Graph& graph, const Observations& seen, double alpha);

}  // namespace sinter::convert
