// The nodes, data and declarations that a repair changes, before and after.
#pragma once

#include <string>

#include "converter/repair/repair.h"

namespace sinter::convert {

// Returns lines that begin with "- " (before), "+ " (after) or "@ " (the graph, body or function).
std::string diff_text(const Repair& repair);

}  // namespace sinter::convert
