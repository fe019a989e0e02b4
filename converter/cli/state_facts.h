// Facts about memory that outlives a run: states, and the inputs and outputs that callers may bind.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/cli/file_view.h"

namespace sinter::convert {

// Returns the entry's states: names, type, shape, bytes, memory, and whether runs update them in place.
nlohmann::json states_json(const FileView& view);
// Returns a line of text for each state.
std::string states_text(const FileView& view);

// Whether a session can have the value in the caller's memory: it shares its planned memory only with values
// inside it, and no step overwrites it if it is an input.
bool is_bindable(const FileView& view, uint32_t value);

}  // namespace sinter::convert
