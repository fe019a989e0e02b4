// The option --processors of commands that compute on threads.
#pragma once

#include <string>
#include <vector>

namespace sinter::convert {

// The processors that "0,2-3" lists; "fast": the fastest of this machine; empty: none. Throws UsageError for
// any other text.
std::vector<int> parse_processors(const std::string& text);

// For --help.
inline constexpr const char* kProcessorsHelp =
    "Run the threads beside the first on these processors: 0,2-3, or fast for the fastest ones";

}  // namespace sinter::convert
