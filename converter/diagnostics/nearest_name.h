// Advice in messages about a name that does not exist: the name that was probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sinter::convert {

// Returns the number of letters to insert, remove or replace to get from one name to the other.
size_t edit_distance(const std::string& a, const std::string& b);

// Returns the name that is closest to `wanted`: one that contains it or has the fewest letters to change;
// null where none is near (more than a third of the letters and more than two).
const std::string* nearest_name(std::span<const std::string> names, const std::string& wanted);

// Returns the last part of a message about a name that does not exist: "did you mean 'a'?", with a list of
// the names if it is short; without a near name the list, or a part of it with a count.
std::string advise_name(std::span<const std::string> names, const std::string& wanted);

}  // namespace sinter::convert
