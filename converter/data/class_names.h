// Class names in the order of a model's scores: files of one name a line, and of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinter::convert {

// Returns the names in the order of their numbers. A file named *.json has the forms of names_in_json();
// every other one has a name in each line, without the byte order mark, and without the spaces and the
// carriage return behind each. Throws FileError where the file cannot be read, DataError naming the place
// where a name is missing.
std::vector<std::string> read_class_names(const std::filesystem::path& file);

// Returns the place of a name in its file, for messages: "names.txt, line 3", "names.json, name 3".
std::string place_of_name(const std::filesystem::path& file, size_t index);

// Returns the names of a JSON text: an array of names; an object from numbers to names, or to arrays that end
// in the name; an object from names to numbers; or an object that has one of these as "id2label". Numbers
// begin with 0 and leave none out. Nothing: the text has another form, or a key twice.
std::optional<std::vector<std::string>> names_in_json(std::string_view text);

// Returns the names of a list or dict as Python prints it: {0: 'cat', 1: "dog's"}. Nothing: the text has
// another form.
std::optional<std::vector<std::string>> names_in_python(std::string_view text);

// Returns the axis of an output's classes: the last that has several entries, without the first axis, which
// may count a batch; the last one if there is none. `dims` is not empty.
size_t class_axis(std::span<const int64_t> dims);

}  // namespace sinter::convert
