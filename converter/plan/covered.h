// How many bytes a set of ranges covers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace sinter::convert {

// Ranges [first, second); what several cover counts once. Sorts them.
inline uint64_t covered_bytes(std::vector<std::pair<uint64_t, uint64_t>>& spans) {
  std::sort(spans.begin(), spans.end());
  uint64_t sum = 0, end = 0;
  for (const auto& [from, to] : spans) {
    if (to > end) sum += to - std::max(from, end);
    end = std::max(end, to);
  }
  return sum;
}

}  // namespace sinter::convert
