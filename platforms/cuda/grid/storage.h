// The storing of elements of 16-bit floats.
#pragma once

#include <cstdint>

namespace sinter::cuda {

struct Float16 {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

}  // namespace sinter::cuda
