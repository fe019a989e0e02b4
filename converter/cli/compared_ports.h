// The inputs and outputs of two models that are compared: numbers, and the integers of their scales.
#pragma once

#include <string>

#include "converter/cli/host_session.h"
#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// An input or output of this name; without a type: the model has none.
PortInfo port_of(const Model& model, uint32_t entry, bool input, const std::string& name);

// Whether an input is uint8.
bool takes_bytes(const Model& model, uint32_t entry);
// Whether both have the same integers for the same numbers.
bool same_numbers(const PortInfo& a, const PortInfo& b);
// Refuses inputs of the second model that are not those of the first, because its conversion had flags that
// change them; the message names these. `onnx`: the first is an ONNX model, which the flags can be given for.
void check_inputs(const Model& first, uint32_t first_entry, const Model& second, uint32_t entry, bool onnx);
// The same before the ONNX model is lowered, for bytes where it declares floats.
void check_declared(const ImportedGraph& first, const Model& second, uint32_t entry);
// The arrays as the first model takes them: numbers in place of the second one's integers, where it does not
// take the same, rounded as the second one rounds numbers.
Arrays for_first(const Arrays& arrays, const Model& first, uint32_t first_entry, const Model& second,
                 uint32_t entry);

}  // namespace sinter::convert
