// The numbers of entries that an axis may have.
#pragma once

#include <cstdint>

namespace sinter {

// An axis that is not bounded has minimum = maximum.
struct AxisRange {
  int32_t axis = 0;
  int64_t minimum = 0, maximum = 0;
};

// Returns the range as the second number of a status.
inline int64_t address_of(const AxisRange& range) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(&range));
}

}  // namespace sinter
