#include "converter/data/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"

namespace sinter::convert {

std::vector<std::string> read_class_names(const std::filesystem::path& file) {
  const std::vector<std::byte> bytes = bytes_of_file(file);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view name = text.substr(at, end - at);
    at = end + 1;
    while (!name.empty() && (name.back() == '\r' || name.back() == ' ')) name.remove_suffix(1);
    if (name.empty())
      throw DataError(fmt::format("{}, line {}: the name is missing; give one name a line", file.string(),
                                  names.size() + 1));
    names.emplace_back(name);
  }
  if (names.empty())
    throw DataError(fmt::format("{}: the file is empty; give one name a line", file.string()));
  return names;
}

size_t class_axis(std::span<const int64_t> dims) {
  for (size_t axis = dims.size() - 1; axis > 0; --axis)
    if (dims[axis] != 1) return axis;
  return dims.size() - 1;
}

}  // namespace sinter::convert
