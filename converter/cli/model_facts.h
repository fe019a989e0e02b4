// Facts about an opened file that several commands print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "converter/cli/host_session.h"

namespace sinter::convert {

// Returns the inputs and outputs (name, type, shape, and whether callers may bind them) and the states.
nlohmann::json ports_json(const Model& model, uint32_t entry);
// Returns a line of text for each of these.
std::string ports_text(const Model& model, uint32_t entry);

// Returns "1.2 MB", "345 kB", "12 B".
std::string readable_bytes(uint64_t bytes);

}  // namespace sinter::convert
