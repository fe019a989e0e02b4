// Files of class names: one name a line, in the order of a model's scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sinter::convert {

// Returns the names in the order of the file, without a byte order mark and without the spaces and the
// carriage return behind each. Throws FileError where the file cannot be read, DataError naming the line
// where a name is missing.
std::vector<std::string> read_class_names(const std::filesystem::path& file);

// Returns the axis of an output's classes: the last that has several entries, without the first axis, which
// may count a batch; the last one if there is none. `dims` is not empty.
size_t class_axis(std::span<const int64_t> dims);

}  // namespace sinter::convert
