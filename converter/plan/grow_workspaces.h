// Workspaces in memory that the plan has anyway.
//
// A program is arranged with what the first candidate of each step needs on one thread. Each step then gets
// what lets that candidate use more threads, and last what the candidates behind it need, as far as it fits
// beside the values that live in the step: neither costs more memory than allowed.
#pragma once

#include <cstdint>

#include "converter/plan/planned_model.h"

namespace sinter::convert {

// The largest sum of bytes that live in one step, if every int8 and int16 value were float32: what the same
// network takes in float, without its workspaces. 0 where nothing is quantized.
uint64_t float_bytes(const PlannedProgram& program);

// Places PlannedStep::wider where it fits. The region of host memory grows to `most_bytes` at most, padding
// included, and never shrinks.
void widen_workspaces(PlannedProgram& program, uint64_t most_bytes);

// Places PlannedStep::later where it fits. Moves nothing else, and the region does not grow.
void grow_workspaces(PlannedProgram& program);

}  // namespace sinter::convert
