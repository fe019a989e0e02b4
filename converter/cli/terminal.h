// Everything that commands print, by printable(): no name of a file or model is obeyed by a terminal. Whoever
// puts a foreign name into a line makes it printable() before, so that no end of a line is in it.
//
// What is printed for people: on a terminal in lines of at most its columns, so that no word is cut at its
// edge; elsewhere as it is, so that each message and each step is one line for scripts.
#pragma once

#include <cstddef>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace sinter::convert {

// The columns of a terminal at this moment: what the system states, else COLUMNS, else kUsualColumns. So many
// for files and pipes, too.
size_t terminal_columns(std::FILE* to);

// Prints messages, one a line, on stderr.
void print_messages(std::string_view text);
// Prints lines on stdout; what does not fit goes on indented.
void print_text(std::string_view text);
// Prints the object of --json on stdout.
void print_json(const nlohmann::json& json);

// The last line of a terminal on stderr, in one row. It goes before anything else is printed, and with
// clear_status().
void show_status(std::string_view line);
void clear_status();

}  // namespace sinter::convert
