// The scale and zero point of DynamicQuantize.
#pragma once

#include <cmath>
#include <cstdint>

namespace sinter {

struct DynamicRange {
  float scale = 1;
  uint8_t zero = 0;
};

// Returns both for numbers from low (0 or less) to high (0 or more). A range that is only zero has scale 1.
inline DynamicRange dynamic_range(float low, float high) {
  const float scale = low == high ? 1.0f : (high - low) / 255.0f;
  const float zero = std::nearbyint(-low / scale);
  return {scale, static_cast<uint8_t>(!(zero > 0) ? 0.0f : zero > 255 ? 255.0f : zero)};
}

}  // namespace sinter
