// sinter help, completion, man: the table of commands in other forms.
#include <fmt/format.h>

#include <memory>

#include "converter/cli/command_table.h"
#include "converter/cli/commands.h"
#include "converter/cli/completion.h"
#include "converter/cli/help_text.h"
#include "converter/cli/man_page.h"
#include "converter/cli/terminal.h"

namespace sinter::convert {
void print_help(const CLI::App& app, const CLI::App* command) {
  const size_t columns = terminal_columns(stdout);
  fmt::print("{}", command == nullptr ? program_help(command_table(app), columns)
                                      : command_help(describe_command(*command), columns));
}

void add_self_description(CLI::App& app) {
  const auto name = std::make_shared<std::string>(), shell = std::make_shared<std::string>();
  CLI::App* help = app.add_subcommand("help", "Print the help of a command");
  CLI::Option* command =
      help->add_option("command", *name, "The command; without it the commands are listed");
  help->callback([name, &app] { print_help(app, name->empty() ? nullptr : app.get_subcommand(*name)); });
  CLI::App* completion =
      app.add_subcommand("completion", "Print a script that completes commands and flags in a shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({std::begin(kShells), std::end(kShells)}));
  completion->footer(
      "Examples:\n"
      "  source <(sinter completion bash)     # in .bashrc\n"
      "  source <(sinter completion zsh)      # in .zshrc, after compinit\n"
      "  sinter completion fish > ~/.config/fish/completions/sinter.fish");
  completion->callback([shell, &app] { fmt::print("{}", completion_script(command_table(app), *shell)); });
  CLI::App* man = app.add_subcommand("man", "Print the manual page sinter(1)");
  man->footer("Example:\n  sinter man > sinter.1 && man -l sinter.1");
  std::vector<std::string> names;
  for (const CommandInfo& info : command_table(app)) names.push_back(info.name);
  command->check(one_of(std::move(names)));
  man->callback([&app] { fmt::print("{}", man_page(command_table(app), app.version())); });
}

}  // namespace sinter::convert
