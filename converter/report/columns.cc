#include "converter/report/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/diagnostics/printable.h"

namespace sinter::convert {

std::string wrapped(std::string_view text, size_t first, size_t indent) {
  const std::string margin(indent, ' ');
  std::string result;
  size_t column = first;
  bool fresh = true;  // no word on this line yet
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      result += "\n" + margin;
      column = indent, fresh = true, ++at;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (!fresh && column + 1 + word.size() > kTerminalColumns) {
      result += "\n" + margin;
      column = indent, fresh = true;
    }
    if (!fresh) result += ' ', ++column;
    result += word;
    column += word.size();
    fresh = false;
    at = end;
    if (at < text.size() && text[at] == ' ') ++at;
  }
  return result + "\n";
}

std::string labelled(std::string_view label, std::string_view text) {
  return fmt::format("{:<{}}", label, kLabelColumns) + wrapped(printable(text), kLabelColumns, kLabelColumns);
}

std::string some_of(const std::vector<std::string>& items, size_t most) {
  const size_t shown = std::min(items.size(), most);
  std::string text;
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + items[i];
  if (shown < items.size()) text += fmt::format(" and {} more", items.size() - shown);
  return text;
}

std::string readable_count(double count) {
  if (count < 10000) return fmt::format("{:.0f}", count);
  for (const auto& [unit, name] : {std::pair(1e3, 'k'), {1e6, 'M'}, {1e9, 'G'}})
    if (count < 1000 * unit) return fmt::format("{:.3g} {}", count / unit, name);
  return fmt::format("{:.3g} T", count / 1e12);
}

}  // namespace sinter::convert
