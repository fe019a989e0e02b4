#include "converter/cli/help_text.h"

#include <fmt/format.h>

#include "converter/report/columns.h"

namespace sinter::convert {
namespace {

constexpr size_t kWideHelp = 72;  // from this many columns on, text stands beside a heading

// Returns the heading with the text beside it, or below it where the heading is too long or lines are short.
std::string entry(const std::string& heading, const std::string& text, size_t columns, size_t beside = 30) {
  const size_t column = columns >= kWideHelp ? beside : 6;
  std::string result = "  " + heading;
  if (result.size() + 2 > column)
    result = wrapped(result, columns, 0, 4) + std::string(column, ' ');
  else
    result.resize(column, ' ');
  return result + wrapped(text, columns, column, column);
}

constexpr size_t kFurther = 6;  // the margin of the further lines of a text

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

std::string command_help(const CommandInfo& command, size_t columns) {
  std::string text = wrapped(command.summary, columns, 0, 0) + "\n" +
                     wrapped("Usage: " + usage_of(command), columns, 0, kFurther) + "\n";
  for (const CommandArgument& a : command.arguments) text += entry(upper(a.name), a.help, columns);
  std::string group;
  for (const CommandFlag& f : command.flags) {
    if (f.group != group) text += fmt::format("{}{}:\n", text.ends_with("\n\n") ? "" : "\n", group = f.group);
    text += entry(flag_heading(f), f.help, columns);
  }
  if (!command.footer.empty()) text += "\n" + wrapped_lines(command.footer, columns, kFurther);
  return text;
}

std::string program_help(const std::vector<CommandInfo>& table, size_t columns) {
  std::string text = wrapped(
      "Sinter turns an ONNX model into a compact file with a fixed memory plan, and runs it.", columns, 0, 0);
  text += "\n" + wrapped("Usage: sinter COMMAND [arguments] [flags]", columns, 0, kFurther) + "\nCommands:\n";
  for (const CommandInfo& command : table) text += entry(command.name, command.summary, columns, 14);
  return text +
         wrapped_lines(
             "\nGeneral:\n"
             "  --version   Print the version\n"
             "  -h,--help   Print this help\n"
             "\nExamples:\n"
             "  sinter convert net.onnx -o net.sinter\n"
             "  sinter run net.sinter --inputs in.npz     # arrays with the names of the model's inputs\n"
             "  sinter inspect net.sinter --steps         # the plan\n"
             "  sinter help convert                       # the flags of a command\n",
             columns, kFurther);
}

}  // namespace sinter::convert
