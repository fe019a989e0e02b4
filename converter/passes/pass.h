// Passes: small, named graph rewrites, listed in one place and checked before and after.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "converter/ir/graph.h"
#include "runtime/backend/kernel.h"

namespace sinter::convert {

class NodeFates;

inline constexpr size_t kLazyBytes = 1 << 20;  // larger weights are computed when they are written

struct Pass {
  const char* name;         // as --disable-pass and --dump-after take it
  const char* description;  // one line, for --help and reports
  // Rewrites the graph (without its bodies; the pipeline visits those) and returns the number of changes.
  int (*run)(Graph& graph);
};

// The rewrites of a pass, and how many it may make. A rewrite is all that a pass changes at one node, or, of
// a pass that rebuilds the graph, all that it changes.
struct Rewrites {
  int most = INT32_MAX, made = 0;
  std::string last;  // the node at which the last one was made; empty: it has no name
};

// All passes in their order.
std::span<const Pass> all_passes();

// Where the list of passes ends, to find the rewrite that changes a result.
struct PassStop {
  size_t passes = SIZE_MAX;  // only the first ones run
  int rewrites = INT32_MAX;  // of the last of these
  bool stops() const { return passes != SIZE_MAX; }
};
// Reads "N", "PASS" or "PASS:N" (--stop-after); UsageError for other text.
PassStop parse_pass_stop(const std::string& text);

struct PassOptions {
  std::vector<std::string> disabled;
  std::string dump_after;  // name of a pass
  PassStop stop;
  std::function<void(const std::string& text)> dump = nullptr;
  bool runs_all() const { return disabled.empty() && !stop.stops(); }
};

struct PassReport {
  struct Entry {
    std::string name, description;
    int changes = 0;
    size_t nodes_after = 0;
    Rewrites rewrites = {};
  };
  // The pass that PassStop ended; null: none.
  const Entry* stopped() const {
    return entries.empty() || entries.back().rewrites.most == INT32_MAX ? nullptr : &entries.back();
  }
  std::vector<Entry> entries;
};

// Runs every enabled pass over a lowered graph and its bodies, which is rewritten then; throws
// std::logic_error where a pass leaves a graph that is not well formed (a bug). Unknown names in the options
// throw UsageError.
// `fates`: where what becomes of each node is entered; null: nowhere.
PassReport run_passes(Graph& graph, const PassOptions& options, NodeFates* fates = nullptr);

// Computes float64 values in float32, public inputs and outputs excepted; returns the number of changed
// nodes.
int narrow_float64(Graph& graph);

// Whether a target's kernels accept a call: ok, or the reason why not.
using AcceptCall = std::function<Status(const OpCall& call, size_t* workspace)>;

// Lets what `accept` takes in a type of 16 bits compute in it, where the rules of half_rules.h allow that;
// the main graph only.
struct HalfSummary {
  size_t concerned = 0;  // operations whose values the model has in the type (or all in float32)
  size_t computed = 0;   // of these, now in the type
  size_t unproven = 0;   // of these, sums that might leave its range
  std::string first_unproven, first_op;
};
// `reached`: by value, what it came to on trial inputs in shares of what is allowed; what is above 1 stays
// in float32.
using Reached = std::map<ValueId, double>;
struct HalfType;
HalfSummary compute_in_half(Graph& graph, const HalfType& type, const AcceptCall& accept,
                            const Reached& reached = {});

// Runs the pass of that name alone; returns its count of changes.
int run_pass(Graph& graph, const char* name);

// Returns the number of nodes of the graph and of its bodies.
size_t count_nodes(const Graph& graph);

}  // namespace sinter::convert
