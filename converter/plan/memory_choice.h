// The memories that steps work in and that values at the borders of bodies are in, before anything is moved.
//
// A control step itself is the host's: it reads its condition and the number of trips there. What it hands to
// a body and takes from it has a memory of its own: a carried value that of its parameter, so that no trip
// moves it unless the body itself works on it in two memories; a result the one that it is computed in.
#pragma once

#include <set>

#include "converter/plan/planner.h"

namespace sinter::convert {

// The memories chosen for a graph with all of its bodies.
struct MemoryChoice {
  static constexpr uint8_t kOpen = 255;  // any: a result that is a constant or captured

  std::vector<uint8_t> where;                     // by node; control steps: 0
  std::vector<std::vector<MemoryChoice>> bodies;  // by node
  std::vector<uint8_t> parameters, results;       // of the graph's own inputs, and its outputs
};

MemoryChoice choose_memories(const Graph& graph, const PlanOptions& options);

// Where the captured operands of a control step begin, and which input of its bodies is the first of them.
size_t first_captured(const Node& control);
size_t own_inputs(const Node& control);
// The memory of a control step's operand that is not captured, and of a result; `bodies`: its own.
uint8_t operand_memory(const Node& control, const std::vector<MemoryChoice>& bodies, size_t operand);
uint8_t result_memory(const Node& control, const std::vector<MemoryChoice>& bodies, size_t result);
// By value: the memories that it is read in. Constants count where a control step or an output reads them.
std::vector<std::set<uint8_t>> memories_read(const Graph& graph, const MemoryChoice& choice);
// By captured operand of a control step: the memories that its bodies read it in, host memory if none does.
std::vector<std::set<uint8_t>> captured_memories(const Node& control,
                                                 const std::vector<MemoryChoice>& bodies);

// Whether the platform of a memory takes the node.
bool takes(const PlanOptions& options, uint8_t memory, const Graph& graph, const Node& node);

}  // namespace sinter::convert
