// The facts about caches, masks and positions that the nodes of a model show, whatever its inputs are called.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/import/dataflow.h"

namespace sinter::convert {

// How an output follows from a value, in rising order of evidence that the two are the ends of one cache.
enum class Carry {
  kNone,      // by products, norms or tables, or not at all
  kPassed,    // the output is the value, as the keys and values that an encoder has computed are
  kComputed,  // the output has elements of the value, moved, scaled, added to, or chosen between
  kWritten,   // new rows are written into the value
  kJoined     // new rows are joined to it along axis 2, or by an attention operator
};
// The values that an output follows from.
std::map<std::string, Carry> carried_by(const Dataflow& flow, const std::string& output);

// The softmaxes and attention operators that see a cache's keys or values.
using Scores = std::set<const ImportedNode*>;
Scores scores_of_cache(const Dataflow& flow, const std::string& cache);

// The uses of an input's elements.
struct InputUses {
  bool any = false;     // a result of the model follows from them, not only from their number
  bool index = false;   // they choose rows of a table, or places
  bool angles = false;  // cosines and sines are computed from them, or looked up in a table by them
  Scores masked;        // whose scores they are joined with, or whose keys they count
};
InputUses uses_of(const Dataflow& flow, const ImportedGraph& graph, const std::string& input);

// The input of one truth that chooses between a branch that reads all of the caches and one that reads none
// of them, as the first run needs it (use_cache_branch of optimum's merged decoders); and the truth of the
// branch that reads them.
struct CacheSwitch {
  std::string input;
  bool reads = true;
};
std::optional<CacheSwitch> cache_switch(const ImportedGraph& graph, const std::vector<std::string>& caches);

}  // namespace sinter::convert
