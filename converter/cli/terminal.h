// Everything that commands print, by printable(): no name of a file or model is obeyed by a terminal. Whoever
// puts a foreign name into a line makes it printable() before, so that no end of a line is in it.
//
// What is printed for people: on a terminal in lines of at most kTerminalColumns columns, so that no word is
// cut at its edge; elsewhere as it is, so that each message and each step is one line for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace sinter::convert {

// Of messages, one a line, on stderr.
void print_messages(std::string_view text);
// Of lines of a listing, on stdout; what does not fit goes on indented.
void print_listing(std::string_view text);
// Of lines, on stdout, as they are.
void print_text(std::string_view text);
// On stdout (--json).
void print_json(const nlohmann::json& json);

}  // namespace sinter::convert
