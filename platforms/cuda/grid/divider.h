// Division of indices by a number that is fixed before the launch: a multiplication on the device.
#pragma once

#include <bit>
#include <cstdint>

#include "platforms/cuda/grid/portable.h"

namespace sinter::cuda {

// Computes n / divisor and n % divisor for n below 2^31 and a divisor from 1 to 2^31 - 1.
// Source: Granlund and Montgomery, Division by Invariant Integers using Multiplication (1994).
struct Divider {
  uint32_t divisor = 1, multiplier = 0, shift = 0;

  Divider() = default;
  constexpr explicit Divider(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    shift = d <= 1 ? 0 : 32u - static_cast<uint32_t>(std::countl_zero(divisor - 1));
    multiplier =
        static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor + 1);
  }
  SINTER_BOTH uint32_t divide(uint32_t n) const {
    const auto high = static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32);
    return (high + n) >> shift;
  }
  SINTER_BOTH uint32_t divide(uint32_t n, uint32_t* remainder) const {
    const uint32_t q = divide(n);
    *remainder = n - q * divisor;
    return q;
  }
};

}  // namespace sinter::cuda
