#include "converter/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace sinter::convert {
namespace {

std::string commands_of(const std::vector<CommandInfo>& table) {
  std::string names;
  for (const CommandInfo& c : table) names += (names.empty() ? "" : " ") + c.name;
  return names;
}

std::string names_of(const CommandInfo& command) {
  std::string names;
  for (const CommandFlag& f : command.flags) {
    names += (names.empty() ? "--" : " --") + f.name;
    if (!f.short_name.empty()) names += " -" + f.short_name;
  }
  return names;
}

// Returns the first sentence, without characters that have a meaning for a shell.
std::string short_help(const std::string& help) {
  std::string text = help.substr(0, std::min(help.find_first_of("\n"), help.find(". ")));
  std::erase_if(
      text, [](char c) { return c == '\'' || c == '[' || c == ']' || c == ':' || c == '\\' || c == '`'; });
  return text;
}

// Returns a function that puts the candidates into COMPREPLY; files for a value or argument without choices.
std::string bash_script(const std::vector<CommandInfo>& table) {
  std::string text = fmt::format(
      "# bash completion of sinter; written by `sinter completion bash`.\n"
      "_sinter() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} "
      "command=${{COMP_WORDS[1]}}\n"
      "  local flags= values=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n",
      commands_of(table));
  for (const CommandInfo& c : table) {
    text += fmt::format("    {})\n      flags='{}'\n", c.name, names_of(c));
    for (const CommandArgument& a : c.arguments)
      if (!a.choices.empty()) text += fmt::format("      values='{}'\n", fmt::join(a.choices, " "));
    text += "      case $before in\n";
    std::string files;
    for (const CommandFlag& f : c.flags) {
      if (!f.takes_value) continue;
      const std::string pattern =
          f.short_name.empty() ? "--" + f.name : fmt::format("--{}|-{}", f.name, f.short_name);
      if (f.choices.empty())
        files += (files.empty() ? "" : "|") + pattern;
      else
        text += fmt::format(
            "        {})\n          COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n          return\n"
            "          ;;\n",
            pattern, fmt::join(f.choices, " "));
    }
    if (!files.empty())
      text += fmt::format(
          "        {})\n          COMPREPLY=($(compgen -f -- \"$word\"))\n          return\n"
          "          ;;\n",
          files);
    text += "      esac\n      ;;\n";
  }
  text +=
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "  elif [[ -n $values ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _sinter sinter\n";
  return text;
}

std::string zsh_script(const std::vector<CommandInfo>& table) {
  std::string text =
      "#compdef sinter\n"
      "# zsh completion of sinter; written by `sinter completion zsh`.\n"
      "_sinter() {\n"
      "  if ((CURRENT == 2)); then\n"
      "    local -a commands=(\n";
  for (const CommandInfo& c : table) text += fmt::format("      '{}:{}'\n", c.name, short_help(c.summary));
  text +=
      "    )\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=${words[2]}\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $command in\n";
  for (const CommandInfo& c : table) {
    text += fmt::format("    {})\n      _arguments", c.name);
    for (const CommandFlag& f : c.flags) {
      const std::string value =
          !f.takes_value
              ? ""
              : fmt::format(":{}:{}", f.name,
                            f.choices.empty() ? "_files" : fmt::format("({})", fmt::join(f.choices, " ")));
      const char* often = f.repeats ? "*" : "";
      text += fmt::format(" \\\n        '{}--{}[{}]{}'", often, f.name, short_help(f.help), value);
      if (!f.short_name.empty())
        text += fmt::format(" \\\n        '{}-{}[{}]{}'", often, f.short_name, short_help(f.help), value);
    }
    for (const CommandArgument& a : c.arguments)
      text += fmt::format(" \\\n        ':{}:{}'", a.name,
                          a.choices.empty() ? "_files" : fmt::format("({})", fmt::join(a.choices, " ")));
    text += "\n      ;;\n";
  }
  return text +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _sinter ]]; then _sinter \"$@\"; else compdef _sinter sinter; fi\n";
}

std::string fish_script(const std::vector<CommandInfo>& table) {
  std::string text = "# fish completion of sinter; written by `sinter completion fish`.\n";
  for (const CommandInfo& c : table)
    text += fmt::format("complete -c sinter -f -n __fish_use_subcommand -a {} -d '{}'\n", c.name,
                        short_help(c.summary));
  for (const CommandInfo& c : table) {
    const std::string when = fmt::format("complete -c sinter -n '__fish_seen_subcommand_from {}'", c.name);
    for (const CommandArgument& a : c.arguments)
      if (!a.choices.empty()) text += fmt::format("{} -f -a '{}'\n", when, fmt::join(a.choices, " "));
    for (const CommandFlag& f : c.flags) {
      text += fmt::format("{} -l {}", when, f.name);
      if (!f.short_name.empty()) text += " -s " + f.short_name;
      if (f.takes_value)
        text += f.choices.empty() ? " -r -F" : fmt::format(" -x -a '{}'", fmt::join(f.choices, " "));
      text += fmt::format(" -d '{}'\n", short_help(f.help));
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const std::vector<CommandInfo>& table, const std::string& shell) {
  if (shell == "bash") return bash_script(table);
  if (shell == "zsh") return zsh_script(table);
  if (shell == "fish") return fish_script(table);
  throw std::logic_error("no completion for " + shell);
}

}  // namespace sinter::convert
