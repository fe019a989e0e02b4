#include "converter/data/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"

namespace sinter::convert {
namespace {

using nlohmann::json;
using ClassNames = std::optional<std::vector<std::string>>;

bool is_json_file(const std::filesystem::path& file) {
  std::string end = file.extension().string();
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end == ".json";
}

// Returns the names of a text of lines. Throws DataError naming the line that has none.
std::vector<std::string> names_in_lines(std::string_view text, const std::filesystem::path& file) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view name = text.substr(at, end - at);
    at = end + 1;
    while (!name.empty() && (name.back() == '\r' || name.back() == ' ')) name.remove_suffix(1);
    names.emplace_back(name);
  }
  if (names.empty())
    throw DataError(fmt::format("{}: the file is empty; give one name a line", file.string()));
  return names;
}

// Returns the JSON of a text; discarded where it is damaged or an object has a key twice.
json with_single_keys(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  bool twice = false;
  json parsed = json::parse(
      text,
      [&](int, json::parse_event_t event, json& item) {
        if (event == json::parse_event_t::object_start) keys.emplace_back();
        if (event == json::parse_event_t::object_end) keys.pop_back();
        if (event == json::parse_event_t::key) twice |= !keys.back().insert(item.get<std::string>()).second;
        return true;
      },
      false);
  return twice ? json(json::value_t::discarded) : parsed;
}

// Puts a name in its place among as many as there are. Returns whether it is the place's first.
bool put_name(size_t number, const json& name, std::vector<std::string>* names, std::vector<bool>* have) {
  if (number >= names->size() || (*have)[number] || !name.is_string()) return false;
  (*have)[number] = true, (*names)[number] = name.get<std::string>();
  return true;
}

ClassNames names_of_object(const json& object) {
  std::vector<std::string> names(object.size());
  std::vector<bool> have(object.size());
  const bool by_name = std::all_of(object.begin(), object.end(),
                                   [](const json& number) { return number.is_number_unsigned(); });
  for (const auto& [key, value] : object.items()) {
    size_t number = 0;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (by_name
            ? !put_name(value.get<size_t>(), json(key), &names, &have)
            : fault != std::errc() || end != key.data() + key.size() ||
                  !put_name(number, value.is_array() && !value.empty() ? value.back() : value, &names, &have))
      return {};
  }
  return names;
}

// Returns the text in the notation of JSON; nothing where a string has an escape but of a quote or a
// backslash. Numbers that are keys become strings.
std::optional<std::string> json_of_python(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\'' || c == '"') {
      std::string name;
      for (++i; i < text.size() && text[i] != c; ++i) {
        if (text[i] == '\\' && (++i == text.size() || std::string_view("'\"\\").find(text[i]) == text.npos))
          return {};
        name += text[i];
      }
      out += json(name).dump(-1, ' ', false, json::error_handler_t::replace);
      ++i;
    } else if (c >= '0' && c <= '9') {
      const size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
      const std::string number(text.substr(i, end - i));
      out += end < text.size() && text[end] == ':' ? '"' + number + '"' : number;
      i = end;
    } else {
      out += c, ++i;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> read_class_names(const std::filesystem::path& file) {
  const std::vector<std::byte> bytes = bytes_of_file(file);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool is_json = is_json_file(file);
  const ClassNames names = is_json ? names_in_json(text) : names_in_lines(text, file);
  if (!names || names->empty())
    throw DataError(
        fmt::format("{}: the file is no list of names in JSON; give an array of names, an object from the "
                    "numbers 0, 1, ... to names, or a file of another ending with one name a line",
                    file.string()));
  const auto missing = std::find(names->begin(), names->end(), "");
  if (missing != names->end())
    throw DataError(fmt::format("{}: the name is missing; give one name {}",
                                place_of_name(file, static_cast<size_t>(missing - names->begin())),
                                is_json ? "for each number" : "a line"));
  return *names;
}

std::string place_of_name(const std::filesystem::path& file, size_t index) {
  return fmt::format("{}, {} {}", file.string(), is_json_file(file) ? "name" : "line", index + 1);
}

std::optional<std::vector<std::string>> names_in_json(std::string_view text) {
  json found = with_single_keys(text);
  if (found.is_object() && found.contains("id2label")) found = json(found["id2label"]);
  if (found.is_object()) return names_of_object(found);
  if (!found.is_array() ||
      !std::all_of(found.begin(), found.end(), [](const json& name) { return name.is_string(); }))
    return {};
  return found.get<std::vector<std::string>>();
}

std::optional<std::vector<std::string>> names_in_python(std::string_view text) {
  const std::optional<std::string> as_json = json_of_python(text);
  return as_json ? names_in_json(*as_json) : std::nullopt;
}

size_t class_axis(std::span<const int64_t> dims) {
  for (size_t axis = dims.size() - 1; axis > 0; --axis)
    if (dims[axis] != 1) return axis;
  return dims.size() - 1;
}

}  // namespace sinter::convert
