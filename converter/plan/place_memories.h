// Memories: which of them every step of the final graph works in, and the transfers between.
//
// A step goes where the first backend that would take it works. A View, a Copy, and a Slice whose elements
// are contiguous stay with their operand, since they cost nothing there. Control steps, public inputs
// and outputs and the lengths of bounded values are in host memory; where a value is needed in another memory
// than the one it is made in, a Copy moves it there: once for all readers, just before the first of them.
// From one backend's memory to another's it goes through host memory.
//
// An island (steps of one memory that values of that memory connect) of only element-wise work and
// movement stays on the host if its steps touch no more than twice the bytes that would have to be moved.
//
// Bodies of control steps are placed likewise (memory_choice.h). A captured value is captured in each memory
// that it is read in, so that it is moved outside of the body, once. A body that would take little time on
// the host stays there.
#pragma once

#include "converter/plan/planner.h"

namespace sinter::convert {

// Sets Value::memory and inserts the transfers.
void place_memories(Graph& graph, const PlanOptions& options);

// Brings its operand from host memory to another one, or back.
bool is_transfer(const Graph& graph, const Node& node);
// The memory that a step works in; of a transfer: the device memory.
uint8_t memory_of(const Graph& graph, const Node& node);

}  // namespace sinter::convert
