// Names for boxes that are too narrow for them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sinter::convert {

// Each name in at most `most` letters (8 or more), different for different names. What all names start with
// is left out first; of what is still too long, the end stays, and where ends are equal the first part that
// differs.
std::vector<std::string> short_names(const std::vector<std::string>& names, size_t most);

}  // namespace sinter::convert
