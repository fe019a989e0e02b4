// States: outputs that a session keeps and begins the next run with, as inputs (docs/decoders.md#state).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "converter/import/lower.h"

namespace sinter::convert {

// Enters the states and the bindable inputs and outputs of the options into the lowered graph, whose values
// have their names. The names exist (check_options). False: refused, with every reason filed.
bool add_states(const ImportedGraph& model, const LoweringOptions& options, Graph& graph,
                Diagnostics& diagnostics);

// Outputs and the inputs that they become.
using StatePairs = std::vector<std::pair<std::string, std::string>>;
// Returns the pairs that are probably states: both have one type and shape, their names differ only in words
// such as "in" and "out", "past" and "present", "old" and "new", no other pair has either of them, and the
// output is computed from the input. Pairs for which only this last one does not hold go to `unrelated`.
StatePairs propose_states(const Graph& graph, StatePairs* unrelated = nullptr);

// The words of a name in lower case: "pastKey_0" has three.
std::vector<std::string> words_of_name(const std::string& name);
// Returns the words of an input's or output's name without those by which exporters tell a state's two ends
// apart.
std::vector<std::string> state_stem(const std::string& name, bool input);

}  // namespace sinter::convert
