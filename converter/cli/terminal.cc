#include "converter/cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "converter/diagnostics/printable.h"
#include "converter/report/columns.h"

namespace sinter::convert {
namespace {

constexpr size_t kMessageIndent = 2, kListingIndent = 10;

void print_lines(std::string_view given, std::FILE* to, size_t indent) {
  const std::string clean = printable_lines(given);
  std::string_view text = clean;
  if (::isatty(::fileno(to)) == 0) {
    std::fwrite(text.data(), 1, text.size(), to);
    return;
  }
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string lines = wrapped(text.substr(0, end), 0, indent);
    std::fwrite(lines.data(), 1, lines.size(), to);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void print_messages(std::string_view text) { print_lines(text, stderr, kMessageIndent); }
void print_listing(std::string_view text) { print_lines(text, stdout, kListingIndent); }

void print_text(std::string_view text) {
  const std::string clean = printable_lines(text);
  std::fwrite(clean.data(), 1, clean.size(), stdout);
}

void print_json(const nlohmann::json& json) { std::puts(json_text(json).c_str()); }

}  // namespace sinter::convert
