// Parts of recognise-attention and recognise-writes for caches of a fixed size, whose mask and places follow
// from the position.
#pragma once

#include "converter/ir/graph.h"

namespace sinter::convert {

// Attention whose bias hides each key beyond a position that is computed at run time gets the number of keys
// up to there, so that no others are read. Returns the count of changes.
int limit_to_live_keys(Graph& graph);

// Rows written to consecutive places of an axis, which exporters bring to the front and back for it, become a
// CacheUpdate. Returns the count of changes.
int recognise_row_writes(Graph& graph);

}  // namespace sinter::convert
