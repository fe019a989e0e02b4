#include "converter/report/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "converter/diagnostics/letters.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {

namespace {

struct LetterRange {
  int64_t first, last;
};
// The letters without a column: combining marks, joiners and selectors of variants.
constexpr LetterRange kNoColumn[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},
                                     {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                     {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
constexpr LetterRange kTwoColumns[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},  {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

size_t columns_of(const Letter& letter) {
  const auto in = [&](const LetterRange& range) {
    return letter.code >= range.first && letter.code <= range.last;
  };
  if (std::any_of(std::begin(kNoColumn), std::end(kNoColumn), in)) return 0;
  return std::any_of(std::begin(kTwoColumns), std::end(kTwoColumns), in) ? 2 : 1;
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    columns += columns_of(letter);
    text.remove_prefix(letter.bytes);
  }
  return columns;
}

std::string cut_to(std::string_view text, size_t columns) {
  constexpr std::string_view kCut = "...";
  if (columns_of(text) <= columns) return std::string(text);
  if (columns <= kCut.size()) return std::string(columns, '.');
  size_t at = 0;
  for (size_t used = kCut.size(); at < text.size();) {
    const Letter letter = first_letter(text.substr(at));
    used += columns_of(letter);
    if (used > columns) break;
    at += letter.bytes;
  }
  return std::string(text.substr(0, at)).append(kCut);
}

std::string wrapped(std::string_view text, size_t columns, size_t first, size_t indent) {
  std::string result;
  size_t column = first;
  bool fresh = first == 0;  // this line has only the margin
  const auto begin_line = [&](size_t margin) {
    result += '\n';
    result.append(margin, ' ');
    column = margin, fresh = true;
  };
  while (!text.empty()) {
    if (text[0] == '\n') {
      begin_line(indent);
      text.remove_prefix(1);
      continue;
    }
    const size_t gap = std::min(text.find_first_not_of(' '), text.size());
    const size_t end = std::min(text.find_first_of(" \n", gap), text.size());
    const std::string_view word = text.substr(gap, end - gap);
    const size_t width = columns_of(word);
    text.remove_prefix(end);
    if (word.empty()) continue;  // spaces at the end of a line
    const size_t margin = width >= columns ? 0 : std::min(indent, columns - width);
    if (column + gap + width > columns && (!fresh || margin < column)) {
      if (fresh) {  // the word takes a part of the margin
        result.resize(result.size() - (column - margin));
        column = margin;
      } else {
        begin_line(margin);
      }
    } else {
      const size_t room = columns - std::min(columns, column + width);
      const size_t spaces = fresh ? std::min(gap, room) : gap;
      result.append(spaces, ' ');
      column += spaces;
    }
    result += word;
    column += width;
    fresh = false;
  }
  return result + '\n';
}

std::string wrapped_lines(std::string_view text, size_t columns, size_t indent) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    result += wrapped(text.substr(0, end), columns, 0, indent);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string labelled(std::string_view label, std::string_view text) {
  return fmt::format("{:<{}}{}\n", label, kLabelColumns, printable(text));
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
