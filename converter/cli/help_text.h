// The help of the program and of a command, in lines of at most `columns` columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "converter/cli/command_table.h"

namespace sinter::convert {

std::string program_help(const std::vector<CommandInfo>& table, size_t columns);
std::string command_help(const CommandInfo& command, size_t columns);

// Returns "sinter convert MODEL -o FILE [flags]".
std::string usage_of(const CommandInfo& command);
// Returns "-o,--output FILE".
std::string flag_heading(const CommandFlag& flag);

}  // namespace sinter::convert
