// Completion of commands, flags and the values of flags in shells.
#pragma once

#include <string>
#include <vector>

#include "converter/cli/command_table.h"

namespace sinter::convert {

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

// Returns a script that the shell reads; `shell` is one of kShells.
std::string completion_script(const std::vector<CommandInfo>& table, const std::string& shell);

}  // namespace sinter::convert
