#include "converter/diagnostics/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sinter::convert {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1])});
      corner = above;
    }
  }
  return row[b.size()];
}

const std::string* nearest_name(std::span<const std::string> names, const std::string& wanted) {
  constexpr size_t kMostLetters = 256;  // longer names are not compared letter by letter
  const std::string* nearest = nullptr;
  size_t least = std::max<size_t>(2, wanted.size() / 3);
  for (const std::string& name : names) {
    size_t distance = least + 1;
    if (name == wanted)
      distance = 0;
    else if (wanted.size() >= 3 && name.find(wanted) != std::string::npos)
      distance = 1;
    else if (name.size() <= kMostLetters && wanted.size() <= kMostLetters &&
             std::max(name.size(), wanted.size()) - std::min(name.size(), wanted.size()) <= least)
      distance = edit_distance(name, wanted);
    if (distance > least || (nearest != nullptr && distance == least)) continue;
    least = distance;
    nearest = &name;
  }
  return nearest;
}

std::string advise_name(std::span<const std::string> names, const std::string& wanted) {
  constexpr size_t kMostListed = 12;
  if (const std::string* near = nearest_name(names, wanted)) {
    // A user may mean several of a few names.
    if (names.size() == 1 || names.size() > kMostListed) return fmt::format("did you mean '{}'?", *near);
    return fmt::format("did you mean '{}'? There are {}", *near, fmt::join(names, ", "));
  }
  if (names.empty()) return "there are none";
  if (names.size() == 1) return fmt::format("give {}", names.front());
  if (names.size() <= kMostListed) return fmt::format("give one of {}", fmt::join(names, ", "));
  return fmt::format("there are {}, such as {}", names.size(), fmt::join(names.first(4), ", "));
}

}  // namespace sinter::convert
