// Joins taken apart, so that most of what they move is written where it belongs. A Concat's operands that
// cannot be placed in it are copied there by steps of their own; a Pad becomes joins of its operand and of
// what surrounds it, in the same order of axes as its kernel has.
#pragma once

#include <memory>
#include <vector>

#include "converter/plan/elide.h"

namespace sinter::convert {

struct Parted {
  std::shared_ptr<const Graph> graph;
  static constexpr size_t kNew = SIZE_MAX;
  std::vector<size_t> origin;  // by node: the same node's index in the graph before, or kNew
  std::vector<ValueId> whole;  // results of the joins that are to be elided
};

// Whether a Pad can be written as joins: a border that is reflected or wrapped is no wider than what it
// repeats.
bool can_part(const Graph& graph, const Node& node);
// Takes the given steps of `graph` apart, whose Pads can_part(). Values keep their ids, new ones follow.
Parted part_joins(const Graph& graph, const std::vector<PartialJoin>& joins);

}  // namespace sinter::convert
