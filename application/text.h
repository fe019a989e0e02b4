#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <span>

namespace sinter {

// Appends to a text of fixed size.
struct Text {
  std::span<char> buffer;
  size_t used = 0;

  [[gnu::format(printf, 2, 3)]] void put(const char* format, ...) {
    std::va_list values;
    va_start(values, format);
    const int n = std::vsnprintf(buffer.data() + used, buffer.size() - used, format, values);
    va_end(values);
    if (n > 0) used = std::min(used + static_cast<size_t>(n), buffer.size() - 1);
  }
  std::span<char> rest() const { return buffer.subspan(used); }
};

}  // namespace sinter
