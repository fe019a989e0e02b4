#include "converter/cli/command_table.h"

#include <algorithm>

#include "converter/cli/flags.h"

namespace sinter::convert {
namespace {

// Returns the choices in a type "TEXT:{a,b}", as one_of() describes it.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return choices;
  for (size_t at = begin + 1; at <= end;) {
    const size_t comma = std::min(type.find(',', at), end);
    choices.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

CommandFlag describe_flag(const CLI::Option& option) {
  CommandFlag flag;
  flag.name = option.get_lnames().front();
  if (!option.get_snames().empty()) flag.short_name = option.get_snames().front();
  flag.type = option.get_type_name();
  flag.help = option.get_description();
  flag.group = option.get_group();
  flag.choices = choices_of(flag.type);
  flag.takes_value = option.get_items_expected_max() > 0;
  flag.repeats = option.get_items_expected_max() > 1;
  flag.required = option.get_required();
  if (flag.takes_value) flag.form = option.get_option_text();
  return flag;
}

size_t place_of(const std::string& group) {
  const auto& order = flag_group::kOrder;
  return static_cast<size_t>(std::find(std::begin(order), std::end(order), group) - std::begin(order));
}

}  // namespace

CommandInfo describe_command(const CLI::App& command) {
  CommandInfo info{command.get_name(), command.get_description(), {}, {}, command.get_footer()};
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional())
      info.arguments.push_back({option->get_name(), option->get_description(),
                                choices_of(option->get_type_name()), option->get_required()});
    else
      info.flags.push_back(describe_flag(*option));
  }
  std::stable_sort(info.flags.begin(), info.flags.end(), [](const CommandFlag& a, const CommandFlag& b) {
    return place_of(a.group) < place_of(b.group);
  });
  return info;
}

std::vector<CommandInfo> command_table(const CLI::App& app) {
  std::vector<CommandInfo> table;
  for (const CLI::App* command : app.get_subcommands({})) table.push_back(describe_command(*command));
  return table;
}

}  // namespace sinter::convert
