// --help: of the program and of a command, in lines of at most 100 columns.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/command_table.h"

namespace sinter::convert {

std::string program_help(const std::vector<CommandInfo>& table);
std::string command_help(const CommandInfo& command);

// "sinter convert MODEL -o FILE [flags]"
std::string usage_of(const CommandInfo& command);
// "-o,--output FILE"
std::string flag_heading(const CommandFlag& flag);

}  // namespace sinter::convert
