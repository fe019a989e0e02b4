// What a model does with the caches that it takes and gives, by its nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// An input of rank 4 and the output that it becomes, along axis 2:
enum class CacheKind {
  kGrows,  // new rows are joined to the past ones
  kFixed,  // rows are written into the room that it has: the output is declared as long as the input
  kPassed  // the output is the input, as keys and values of what an encoder has computed are
};
CacheKind cache_kind(const ImportedGraph& graph, const ImportedValueInfo& input,
                     const ImportedValueInfo& output);

// The input of one truth that chooses between a branch that reads all of the caches and one that reads none
// of them, as the first run needs it (use_cache_branch of optimum's merged decoders); and the truth of the
// branch that reads them.
struct CacheSwitch {
  std::string input;
  bool reads = true;
};
std::optional<CacheSwitch> cache_switch(const ImportedGraph& graph, const std::vector<std::string>& caches);

}  // namespace sinter::convert
