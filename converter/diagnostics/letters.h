// Letters of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sinter::convert {

struct Letter {
  size_t bytes = 1;
  int64_t code = -1;  // -1: a byte that is not UTF-8
};
// Returns the first letter of `text`, which must not be empty.
Letter first_letter(std::string_view text);

}  // namespace sinter::convert
