// The inputs and outputs of two models that are compared: numbers, and the integers of their scales.
#pragma once

#include <string>

#include "converter/cli/host_session.h"

namespace sinter::convert {

// An input or output of this name; without a type: the model has none.
PortInfo port_of(const Model& model, uint32_t entry, bool input, const std::string& name);

// Whether both have the same integers for the same numbers.
bool same_numbers(const PortInfo& a, const PortInfo& b);
// Refuses bytes of the second model that the first has floats for: what these are is not in the file.
void check_bytes(const Model& first, uint32_t first_entry, const Model& second, uint32_t entry);
// The arrays as the first model takes them: numbers in place of the second one's integers, where it does not
// take the same, rounded as the second one rounds numbers.
Arrays for_first(const Arrays& arrays, const Model& first, uint32_t first_entry, const Model& second,
                 uint32_t entry);

}  // namespace sinter::convert
