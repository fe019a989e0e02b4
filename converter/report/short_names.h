// Short forms of names for narrow boxes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sinter::convert {

// Returns each name in at most `most` letters (8 or more), different for different names. The common start is
// left out first; a name that is still too long keeps its end, and, among equal ends, the part that differs.
std::vector<std::string> short_names(const std::vector<std::string>& names, size_t most);

}  // namespace sinter::convert
