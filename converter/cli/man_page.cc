#include "converter/cli/man_page.h"

#include <fmt/format.h>

#include "converter/cli/help_text.h"

namespace sinter::convert {
namespace {

// Returns the text so that the formatter prints it: without escapes, or requests at the start of a line.
std::string plain(const std::string& text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    begins = c == '\n';
  }
  return result;
}

// Returns the text with each of its lines on a line, as in lists and examples.
std::string lines(const std::string& text) {
  std::string result;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (at > 0) result += ".br\n";
    result += plain(line.substr(std::min(line.find_first_not_of(' '), line.size()))) + "\n";
    at = end + 1;
  }
  return result;
}

}  // namespace

std::string man_page(const std::vector<CommandInfo>& table, const std::string& version) {
  std::string text = fmt::format(
      ".TH SINTER 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nsinter \\- turn an ONNX model into a "
      "compact file "
      "with a fixed memory plan, and run it\n.SH SYNOPSIS\n.B sinter\n.I COMMAND\n[arguments] [flags]\n.SH "
      "COMMANDS\n",
      version);
  for (const CommandInfo& c : table) text += fmt::format(".TP\n.B {}\n{}\n", plain(c.name), plain(c.summary));
  for (const CommandInfo& c : table) {
    std::string heading = "sinter " + c.name;
    for (char& x : heading)
      if (x >= 'a' && x <= 'z') x = static_cast<char>(x - 'a' + 'A');
    text += fmt::format(".SH \"{}\"\n{}.\n.PP\n.B {}\n", heading, plain(c.summary), plain(usage_of(c)));
    for (const CommandArgument& a : c.arguments)
      text += fmt::format(".TP\n.I {}\n{}", plain(a.name), lines(a.help));
    std::string group;
    for (const CommandFlag& f : c.flags) {
      if (f.group != group) text += fmt::format(".SS \"{}\"\n", group = f.group);
      text += fmt::format(".TP\n.B {}\n{}", plain(flag_heading(f)), lines(f.help));
    }
    if (!c.footer.empty()) text += ".PP\n.nf\n" + plain(c.footer) + "\n.fi\n";
  }
  text +=
      ".SH \"EXIT STATUS\"\n"
      ".TP\n.B 0\nDone.\n"
      ".TP\n.B 1\nNegative result: out of tolerance, a finding of \\-\\-strict, accuracy missed.\n"
      ".TP\n.B 2\nWrong usage.\n"
      ".TP\n.B 3\nThe model is refused; every reason is listed.\n"
      ".TP\n.B 4\nThe model file is corrupt, foreign or too new, or not signed with \\-\\-public\\-key.\n"
      ".TP\n.B 5\nInput or calibration data is wrong.\n"
      ".TP\n.B 6\nThe system failed: files, memory.\n";
  return text;
}

}  // namespace sinter::convert
