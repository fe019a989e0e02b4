// Names and texts of other people's files, for terminals, pages and JSON. All of them pass these functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sinter::convert {

// Returns the text with escapes ("\x1b", "\u202e") for everything that a terminal would obey or hide: control
// characters (C0, C1, newlines), marks of direction, invisible tags, and bytes that are not UTF-8.
std::string printable(std::string_view text);
// Returns the same, but with newlines.
std::string printable_lines(std::string_view text);
// Returns the text of an error. Newlines stay where the next line is indented, as none of another message is.
std::string one_message(std::string_view text);
// Returns the JSON with every string and every key printable.
nlohmann::json printable_json(const nlohmann::json& json);

// Returns the text with bytes that are not UTF-8, and zero bytes, as "\xff".
std::string as_utf8(std::string_view text);

// Returns the text of JSON with any strings: as_utf8() of them, with JSON's own escapes, which readers turn
// back, for letters that printable() would replace. `indent` -1: in one line.
std::string json_text(const nlohmann::json& json, int indent = 2);

}  // namespace sinter::convert
