// The rounding of a block of x to int8 by LowBitFullyConnected (activation_bits 8): the same integers and
// scales on every platform.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace sinter {

// Returns the largest magnitude / 127, in float32; NaN if a number is not finite.
template <class T>
float rounded_block_scale(const T* x, int64_t n) {
  float most = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    const float v = std::fabs(static_cast<float>(x[i]));
    finite = finite && v <= std::numeric_limits<float>::max();
    if (v > most) most = v;
  }
  return finite ? most / 127.0f : std::numeric_limits<float>::quiet_NaN();
}

// Returns the integer nearest to x / scale, half to even, from -127 to 127; 0 where the scale is 0 or NaN.
// The block's sum is 0 * NaN then, so that the result is NaN.
inline float rounded_to_int8(float x, float scale) {
  if (!(scale > 0)) return 0;
  const float q = std::nearbyint(x / scale);
  return q < -127.0f ? -127.0f : q > 127.0f ? 127.0f : q;
}

}  // namespace sinter
