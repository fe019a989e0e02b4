// Stripes: several steps of a network computed a few rows of their result at a time, so that what is between
// them never exists as a whole. Rows are the entries of axis 1 of values [1, rows, ..., channels]. Windows
// overlap: rows between two stripes are computed for both.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "converter/ir/graph.h"
#include "converter/plan/row_window.h"

namespace sinter::convert {

// Returns whether rows of the node's one result follow from rows of its operands.
bool has_rows(const Graph& graph, const Node& node);

// RowsRead is the part of an operand that a node with rows reads to compute the rows `out`, and along which
// axis of the operand (a Transpose's may be another one). nullopt: the node reads all of it, whatever the
// rows. The range is empty where the windows are in the padding.
struct RowsRead {
  RowRange rows;
  size_t axis = 1;
};
std::optional<RowsRead> rows_read(const Graph& graph, const Node& node, size_t operand, RowRange out);

// StripeRegion is steps to be computed together. No result but the last one is read elsewhere.
struct StripeRegion {
  std::vector<size_t> nodes;  // ascending; the last one's result is whole again
};

// Returns the regions that end in node `last`, one growing out of the other, of at most `most` nodes: against
// the order of execution as long as operands have rows and no other readers.
std::vector<StripeRegion> regions_ending(const Graph& graph, const Uses& uses, size_t last, size_t most);

// Stripe is the rows of each node's result, by index in the region.
using Stripe = std::vector<RowRange>;
// Returns `parts` stripes of nearly the same number of rows. Nothing if there are fewer rows, or a window is
// entirely in the padding.
std::vector<Stripe> cut_stripes(const Graph& graph, const StripeRegion& region, int64_t parts);

struct Striping {
  StripeRegion region;
  std::vector<Stripe> stripes;
};

// Replaces each region, at its last node, by Slices of what the region reads, the nodes of each stripe, and a
// Concat of the result. No node is in two regions. The values keep their bits; results get new ids, but for
// those of the regions. Returns of each new node which node it comes from; nothing, with an unusable graph,
// where an operation does not take the stripes.
std::optional<std::vector<size_t>> compute_in_stripes(Graph& graph, const std::vector<Striping>& stripings);

}  // namespace sinter::convert
