// Text for a terminal: lines of at most 100 columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::convert {

inline constexpr size_t kTerminalColumns = 100;

// `text` broken at spaces, where its lines are too long; a longer word keeps a line of its own. The first
// line begins at column `first`, which the caller has filled; the others are indented by `indent`. Line
// breaks of `text` stay. Ends with a line break.
std::string wrapped(std::string_view text, size_t first, size_t indent);

// "label     text", wrapped under the text.
inline constexpr size_t kLabelColumns = 10;
std::string labelled(std::string_view label, std::string_view text);

// "a, b, c and 7 more": the first `most` of the items.
std::string some_of(const std::vector<std::string>& items, size_t most);

// "842", "12.3 k", "2.71 M", "1.24 G".
std::string readable_count(double count);

}  // namespace sinter::convert
