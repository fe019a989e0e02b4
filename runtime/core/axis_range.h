// The numbers of entries that an axis may have.
#pragma once

#include <cstdint>

namespace sinter {

// One number unless the axis is bounded.
struct AxisRange {
  int32_t axis = 0;
  int64_t minimum = 0, maximum = 0;
};

// A range as a status's second number.
inline int64_t address_of(const AxisRange& range) {
  return static_cast<int64_t>(reinterpret_cast<intptr_t>(&range));
}

}  // namespace sinter
