// The inputs and outputs of two models that are compared: their numbers, and the integers for these.
#pragma once

#include <string>

#include "converter/cli/host_session.h"
#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// Returns the input or output of this name, without a type if the model has none.
PortInfo port_of(const Model& model, uint32_t entry, bool input, const std::string& name);

// Whether an input is uint8.
bool takes_bytes(const Model& model, uint32_t entry);
// Whether both ports have the same integers for the same numbers.
bool same_numbers(const PortInfo& a, const PortInfo& b);
// Refuses inputs of the second model that differ from those of the first, because flags of its conversion
// changed them; the message names the flags. `onnx`: the first is an ONNX model, for which they can be given.
void check_inputs(const Model& first, uint32_t first_entry, const Model& second, uint32_t entry, bool onnx);
// Does so before the ONNX model is lowered, for inputs of bytes where it declares floats.
void check_declared(const ImportedGraph& first, const Model& second, uint32_t entry);
// Returns the arrays as the first model takes them, with numbers for integers that it does not take.
Arrays for_first(const Arrays& arrays, const Model& first, uint32_t first_entry, const Model& second,
                 uint32_t entry);

}  // namespace sinter::convert
