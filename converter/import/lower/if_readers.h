// Results of an If that have different ranks in its branches: the nodes that read them are lowered in both
// branches, until what leaves these has one rank.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "converter/import/lowering.h"

namespace sinter::convert {

struct IfReaders {
  std::vector<const ImportedNode*> nodes;   // lowered in the branches, in order
  std::vector<const ImportedNode*> before;  // what they read besides, in order; none of it reads the If
  std::vector<std::string> results;         // names of the If's results and of theirs that others read
};

// The readers so far and those of `names`, with all nodes between them. nullopt: one of `names` leaves the
// graph.
std::optional<IfReaders> with_readers_of(NodeLowering& n, const IfReaders& readers,
                                         const std::set<std::string>& names);

}  // namespace sinter::convert
