// Text for people: lines that end at spaces, within a number of columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::convert {

// The columns of text that is not printed on a terminal.
inline constexpr size_t kUsualColumns = 100;

// Returns the columns of printable UTF-8: two for East Asian letters and pictures, none for combining marks.
size_t columns_of(std::string_view text);
// Returns the text, or its beginning and "...", in at most `columns` columns.
std::string cut_to(std::string_view text, size_t columns);

// Returns `text` with lines longer than `columns` broken at spaces, and with a line break at its end. A word
// that is longer than a line stays whole. The first line begins at column `first`, which the caller has
// filled; the others are indented by `indent`, or by less where a word fits no other way. Line breaks stay.
std::string wrapped(std::string_view text, size_t columns, size_t first, size_t indent);
// Returns each line of `text` wrapped by itself.
std::string wrapped_lines(std::string_view text, size_t columns, size_t indent);

// Returns "label     text", a line whose text wrapped_lines(..., kLabelColumns) keeps under the first letter.
inline constexpr size_t kLabelColumns = 10;
std::string labelled(std::string_view label, std::string_view text);

// Returns "a, b, c and 7 more": the first `most` of the items.
std::string some_of(const std::vector<std::string>& items, size_t most);

// Returns "842", "12.3 k", "2.71 M", "1.24 G".
std::string readable_count(double count);

}  // namespace sinter::convert
