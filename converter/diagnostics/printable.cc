#include "converter/diagnostics/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "converter/diagnostics/letters.h"

namespace sinter::convert {

Letter first_letter(std::string_view text) {
  const auto byte_at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte_at(0);
  if (first < 0x80) return {1, first};
  const size_t bytes = first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4) return {};
  int64_t code = first & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte_at(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte_at(i) & 0x3F);
  }
  constexpr int64_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return {};
  return {bytes, code};
}

namespace {

struct Range {
  int64_t first, last;
};
constexpr Range kHidden[] = {
    {0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C},   // Arabic letter mark
    {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069},   // marks of direction, ends of lines
    {0xFFF9, 0xFFFB}, {0xFEFF, 0xFEFF}, {0xE0000, 0xE007F}  // annotations, byte order mark, tags
};

bool is_hidden(int64_t code) {
  for (const Range& r : kHidden)
    if (code >= r.first && code <= r.last) return true;
  return false;
}

// Returns the text with `replace` of each letter in its place; a letter stays if that is empty.
template <class Replace>
std::string replaced(std::string_view text, const Replace& replace) {
  std::string out;
  out.reserve(text.size());
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  while (true) {
    size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const Letter letter = first_letter(text);
    const std::string other =
        letter.code < 0 ? fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0])) : replace(letter.code);
    out += other.empty() ? std::string(text.substr(0, letter.bytes)) : other;
    text.remove_prefix(letter.bytes);
  }
}

std::string visible(int64_t code) {
  if (!is_hidden(code)) return {};
  return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

template <class Change>
nlohmann::json with_strings(const nlohmann::json& json, const Change& change) {
  if (json.is_string()) return change(json.get_ref<const std::string&>());
  if (json.is_array()) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& item : json) list.push_back(with_strings(item, change));
    return list;
  }
  if (!json.is_object()) return json;
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [key, value] : json.items()) object[change(key)] = with_strings(value, change);
  return object;
}

}  // namespace

std::string printable(std::string_view text) { return replaced(text, visible); }

std::string printable_lines(std::string_view text) {
  return replaced(text, [](int64_t code) { return code == '\n' ? std::string() : visible(code); });
}

std::string one_message(std::string_view text) {
  std::string message;
  while (true) {
    const size_t end = std::min(text.find("\n "), text.size());
    message += printable(text.substr(0, end));
    if (end == text.size()) return message;
    message += '\n';
    text.remove_prefix(end + 1);
  }
}

nlohmann::json printable_json(const nlohmann::json& json) {
  return with_strings(json, [](const std::string& text) { return printable(text); });
}

std::string as_utf8(std::string_view text) {
  return replaced(text, [](int64_t code) { return code == 0 ? std::string("\\x00") : std::string(); });
}

std::string json_text(const nlohmann::json& json, int indent) {
  std::string text;
  try {
    text = json.dump(indent);
  } catch (const nlohmann::json::type_error&) {  // not UTF-8
    text = with_strings(json, [](const std::string& t) { return as_utf8(t); }).dump(indent);
  }
  // Control characters below 0x20 are escaped already; the others occur in strings alone.
  return replaced(text, [](int64_t code) -> std::string {
    if (code < 0x20 || !is_hidden(code)) return {};
    if (code < 0x10000) return fmt::format("\\u{:04x}", code);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + (code & 0x3FF));
  });
}

}  // namespace sinter::convert
