#include "converter/cli/help_text.h"

#include <fmt/format.h>

#include "converter/report/columns.h"

namespace sinter::convert {
namespace {

constexpr size_t kHelpColumn = 30;

// The heading at the left and the text beside it; below it where the heading is too long.
std::string entry(const std::string& heading, const std::string& text) {
  std::string result = "  " + heading;
  if (result.size() + 2 > kHelpColumn)
    result += "\n" + std::string(kHelpColumn, ' ');
  else
    result.resize(kHelpColumn, ' ');
  return result + wrapped(text, kHelpColumn, kHelpColumn);
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

}  // namespace

std::string flag_heading(const CommandFlag& flag) {
  return fmt::format("{}--{}{}", flag.short_name.empty() ? "" : "-" + flag.short_name + ",", flag.name,
                     flag.form.empty() ? "" : " " + flag.form);
}

std::string usage_of(const CommandInfo& command) {
  std::string text = "sinter " + command.name;
  for (const CommandArgument& a : command.arguments)
    text += a.required ? " " + upper(a.name) : " [" + upper(a.name) + "]";
  for (const CommandFlag& f : command.flags)
    if (f.required)
      text += fmt::format(" {}{} {}", f.short_name.empty() ? "--" : "-",
                          f.short_name.empty() ? f.name : f.short_name, f.form);
  return text + " [flags]";
}

std::string command_help(const CommandInfo& command) {
  std::string text = wrapped(command.summary, 0, 0) + fmt::format("\nUsage: {}\n\n", usage_of(command));
  for (const CommandArgument& a : command.arguments) text += entry(upper(a.name), a.help);
  std::string group;
  for (const CommandFlag& f : command.flags) {
    if (f.group != group) text += fmt::format("{}{}:\n", text.ends_with("\n\n") ? "" : "\n", group = f.group);
    text += entry(flag_heading(f), f.help);
  }
  if (!command.footer.empty()) text += "\n" + command.footer + "\n";
  return text;
}

std::string program_help(const std::vector<CommandInfo>& table) {
  std::string text =
      wrapped("Sinter turns an ONNX model into a compact file with a fixed memory plan, and runs it.", 0, 0);
  text += "\nUsage: sinter COMMAND [arguments] [flags]\n\nCommands:\n";
  for (const CommandInfo& command : table)
    text += fmt::format("  {:<12}", command.name) + wrapped(command.summary, 14, 14);
  text +=
      "\nGeneral:\n"
      "  --version   Print the version\n"
      "  -h,--help   Print this help\n"
      "\nExamples:\n"
      "  sinter convert net.onnx -o net.sinter\n"
      "  sinter run net.sinter --inputs in.npz     # arrays with the names of the model's inputs\n"
      "  sinter inspect net.sinter --steps         # the plan\n"
      "  sinter help convert                       # the flags of a command\n";
  return text;
}

}  // namespace sinter::convert
