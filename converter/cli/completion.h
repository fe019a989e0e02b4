// Completion of commands, flags and the values of flags, for shells.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/command_table.h"

namespace sinter::convert {

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

// A script for the shell to read; `shell` is one of kShells.
std::string completion_script(const std::vector<CommandInfo>& table, const std::string& shell);

}  // namespace sinter::convert
