// The commands and their flags as data, for --help, completion, the manual page and the Python package.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sinter::convert {

struct CommandFlag {
  std::string name;        // without dashes
  std::string short_name;  // "o" of -o; may be empty
  std::string type;  // "TEXT", "INT", "FLOAT", with its values: "INT in [1 - 1024]", "TEXT:{int8,int4w}"
  std::string form;  // the value as the help shows it: "NAME=N"; empty: the flag takes none
  std::string help;  // without the form; may have lines
  std::string group;
  std::vector<std::string> choices;  // the only values that the flag takes; empty: it takes others
  bool takes_value = false;
  bool repeats = false;  // takes several values
  bool required = false;
};

struct CommandArgument {
  std::string name, help;
  std::vector<std::string> choices;
  bool required = false;
};

struct CommandInfo {
  std::string name, summary;
  std::vector<CommandArgument> arguments;
  std::vector<CommandFlag> flags;  // by flag_group::kOrder; within a group as declared
  std::string footer;              // examples
};

// Returns the program's commands in the order of declaration.
std::vector<CommandInfo> command_table(const CLI::App& app);
CommandInfo describe_command(const CLI::App& command);

}  // namespace sinter::convert
