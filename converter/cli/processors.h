// The option --processors of commands with threads.
#pragma once

#include <string>
#include <vector>

namespace sinter::convert {

// Returns the processors that "0,2-3" lists, the fastest of this machine for "fast", and none for an empty
// text. Throws UsageError for any other text.
std::vector<int> parse_processors(const std::string& text);

// The help of the option.
inline constexpr const char* kProcessorsHelp =
    "Run the threads beside the first on these processors: 0,2-3, or fast for the fastest ones";

}  // namespace sinter::convert
