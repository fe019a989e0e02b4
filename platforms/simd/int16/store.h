// The last step of an int16 product, number by number.
#pragma once

#include "platforms/simd/table.h"

namespace sinter::simd {

struct End16 {
  const int64_t* bias;
  const float* multipliers;
  int64_t multiplier_step;
  DType to;
  float low, high;  // bounds less the zero point
  int32_t zero;

  void store(int64_t sum, int64_t column, std::byte* y, int64_t at) const {
    const float v = static_cast<float>(sum) * multipliers[column * multiplier_step];
    if (to == DType::kFloat32) {
      reinterpret_cast<float*>(y)[at] = v;
      return;
    }
    const float bounded = !(v > low) ? low : v < high ? v : high;
    constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a sum with it is rounded
    const int32_t q = static_cast<int32_t>((bounded + kMagic) - kMagic) + zero;
    if (to == DType::kInt8)
      reinterpret_cast<int8_t*>(y)[at] = static_cast<int8_t>(q);
    else
      reinterpret_cast<int16_t*>(y)[at] = static_cast<int16_t>(q);
  }
};

template <class A>
End16 end_of(const OpCall& call, const A& a) {
  return {call.in(2).as<const int64_t>(),         call.in(3).as<const float>(),
          call.in(3).size() == 1 ? 0 : 1,         call.out(0).dtype,
          static_cast<float>(a.q_min - a.y_zero), static_cast<float>(a.q_max - a.y_zero),
          static_cast<int32_t>(a.y_zero)};
}

}  // namespace sinter::simd
