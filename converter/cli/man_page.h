// The manual page sinter(1).
#pragma once

#include <string>
#include <vector>

#include "converter/cli/command_table.h"

namespace sinter::convert {

// Returns the page in the macros of man(7).
std::string man_page(const std::vector<CommandInfo>& table, const std::string& version);

}  // namespace sinter::convert
