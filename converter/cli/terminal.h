// Output of commands. All of it passes printable(), so that a terminal obeys no name of a file or model. A
// foreign name is made printable() before it is put into a line, so that it has no end of a line.
//
// A terminal gets lines of at most its columns, so that no word is cut at its edge. Files and pipes get each
// message and each step as one line, for scripts.
#pragma once

#include <cstddef>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace sinter::convert {

// Returns the columns of a terminal as the system states them, else COLUMNS, else kUsualColumns.
size_t terminal_columns(std::FILE* to);

// Prints messages, one a line, on stderr.
void print_messages(std::string_view text);
// Prints lines on stdout; a line that is too long goes on, indented, in the next.
void print_text(std::string_view text);
// Prints the object of --json on stdout.
void print_json(const nlohmann::json& json);

// Shows a line in one row at the end of a terminal on stderr, until other output or clear_status().
void show_status(std::string_view line);
void clear_status();

}  // namespace sinter::convert
