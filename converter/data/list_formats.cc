#include "converter/data/list_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "converter/data/file_list.h"
#include "converter/diagnostics/errors.h"

namespace sinter::convert {
namespace {

using nlohmann::json;

// Parses without exceptions, which would name a byte; errors name the list and the line.
json parsed(std::string_view text) { return json::parse(text, nullptr, false); }

ListEntry entry_of(const json& item, const std::string& where, const std::string& label) {
  if (item.is_string() && !item.get_ref<const std::string&>().empty())
    return {item.get<std::string>(), {}, {}};
  if (!item.is_object())
    throw DataError(where +
                    ": this is neither a file's name nor an object of names and files; give one of them");
  ListEntry entry;
  for (const auto& [key, value] : item.items()) {
    if (!label.empty() && key == label) {
      if (value.is_number_integer())
        entry.label = value.dump();
      else if (value.is_string())
        entry.label = value.get<std::string>();
      else
        throw DataError(fmt::format(
            "{}: \"{}\" is neither a whole number nor the name of a class; give one of them", where, key));
    } else if (value.is_string()) {
      entry.files.emplace_back(key, value.get<std::string>());
    }
  }
  return entry;
}

}  // namespace

std::vector<ListEntry> parse_json_list(std::string_view text, const std::string& what,
                                       const std::string& label) {
  std::vector<ListEntry> entries;
  const auto where = [&] { return fmt::format("{}, entry {}", what, entries.size() + 1); };
  if (const json whole = parsed(text); whole.is_array()) {
    for (const json& item : whole) entries.push_back(entry_of(item, where(), label));
    return entries;
  }
  int64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    at = end + 1, ++line;
    if (piece.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json item = parsed(piece);
    if (item.is_discarded())
      throw DataError(
          fmt::format("{}, line {}: this is not JSON; give one array, or one entry a line", what, line));
    entries.push_back(entry_of(item, where(), label));
  }
  return entries;
}

std::vector<ListEntry> parse_csv_list(std::string_view text, const std::string& what,
                                      const std::string& label) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(1);
  bool quoted = false;
  const auto end_row = [&] {
    if (row.size() > 1 || !row[0].empty()) rows.push_back(std::move(row));
    row.assign(1, {});
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"')
        row.back() += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        row.back() += '"', ++i;
      else
        quoted = false;
    } else if (c == '"' && row.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  if (quoted) throw DataError(what + ": a quotation mark is not closed; close it");
  end_row();
  size_t column = 1, first = 0;
  if (!rows.empty() && kind_of_file(rows[0][0]) == FileKind::kOther) {
    const auto named = std::find(rows[0].begin(), rows[0].end(), label);
    if (!label.empty() && named != rows[0].end()) column = static_cast<size_t>(named - rows[0].begin());
    first = 1;
  }
  std::vector<ListEntry> entries;
  for (size_t i = first; i < rows.size(); ++i) {
    if (rows[i][0].empty())
      throw DataError(fmt::format("{}, row {}: the file is missing; give FILE,LABEL", what, i + 1));
    entries.push_back({rows[i][0], {}, column < rows[i].size() ? rows[i][column] : std::string()});
  }
  return entries;
}

}  // namespace sinter::convert
