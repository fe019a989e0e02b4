// What is printed for people: on a terminal in lines of at most kTerminalColumns columns, so that no word is
// cut at its edge; elsewhere as it is, so that each message and each step is one line for scripts.
#pragma once

#include <string_view>

namespace sinter::convert {

// Of messages, one a line, on stderr.
void print_messages(std::string_view text);
// Of lines of a listing, on stdout; what does not fit goes on indented.
void print_listing(std::string_view text);

}  // namespace sinter::convert
