// For messages about a name that does not exist: the one that was probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sinter::convert {

// Letters to insert, remove or replace to get from one name to the other.
size_t edit_distance(const std::string& a, const std::string& b);

// The name that is closest to `wanted`: the one that contains it or has the fewest letters to change. Null
// where none is near (more than a third of the letters and more than two).
const std::string* nearest_name(std::span<const std::string> names, const std::string& wanted);

// The last part of every message about a name that does not exist: "did you mean 'a'?", with a list of the
// names if it is short; without a near name the list, or a part of it with a count.
std::string advise_name(std::span<const std::string> names, const std::string& wanted);

}  // namespace sinter::convert
