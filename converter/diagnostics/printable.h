// Names and texts of other people's files, for terminals, pages and JSON. Everything foreign goes through
// here.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sinter::convert {

// The text without anything that a terminal would obey or that would hide in it: control characters (C0, C1,
// newlines), marks that change the direction of writing, invisible tags, and bytes that are not UTF-8, as
// "\x1b" and "\u202e".
std::string printable(std::string_view text);
// The same, and newlines stay.
std::string printable_lines(std::string_view text);
// Of an error: newlines stay where the next line is indented, which no line of another message is.
std::string one_message(std::string_view text);
// Every string in it, and every key.
nlohmann::json printable_json(const nlohmann::json& json);

// The text with bytes that are not UTF-8, and zero bytes, as "\xff".
std::string as_utf8(std::string_view text);

// JSON of any strings: as_utf8() of them, and what printable() would replace as JSON's own escapes, which
// readers turn back. `indent` -1: in one line.
std::string json_text(const nlohmann::json& json, int indent = 2);

}  // namespace sinter::convert
