// The names that a file has for people. They are empty in stripped files, and where they are damaged: nothing
// verifies them.
#pragma once

#include "runtime/model/model_state.h"

namespace sinter::detail {

// Returned texts are the file's own and end with a zero. `step` counts the prepare steps behind the others.
// The program and the number are the model's.
const char* value_name(const fb::Model& model, const fb::Program& program, uint32_t value);
const char* step_name(const fb::Model& model, const fb::Program& program, uint32_t step);
// Returns the ONNX operator behind the step.
const char* step_origin(const fb::Model& model, const fb::Program& program, uint32_t step);
// Returns "0 2 3 1" where dim i of the value is axis order[i] of the ONNX value; empty: the same order.
const char* value_order(const fb::Model& model, const fb::Program& program, uint32_t value);

}  // namespace sinter::detail
