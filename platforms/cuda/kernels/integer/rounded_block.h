// Rows of numbers as integers of 8 bits and a scale, as runtime/backend/rounded_block.h defines them.
#pragma once

#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {

// A warp rounds `size` elements from x on, passes each to store(i, q), and returns the scale. It is NaN, and
// the integers are 0, where a number is not finite in float.
template <class T, class Store>
SINTER_DEVICE float round_by_warp(const T* x, uint32_t size, Store store) {
  float most = 0;
  bool finite = true;
  for (uint32_t i = static_cast<uint32_t>(lane()); i < size; i += kWarp) {
    const float v = m_fabs(static_cast<float>(widen(x[i])));
    finite = finite && v < float_of(0x7f800000u);
    if (v > most) most = v;
  }
  most = fold_warp(most, [](float p, float q) { return q > p ? q : p; });
  const float scale = ballot(!finite) == 0 ? most / 127.0f : float_of(0x7fc00000u);
  for (uint32_t i = static_cast<uint32_t>(lane()); i < size; i += kWarp) {
    float q = 0;
    if (scale > 0) {
      q = m_rint(static_cast<float>(widen(x[i])) / scale);
      q = q < -127.0f ? -127.0f : q > 127.0f ? 127.0f : q;
    }
    store(i, q);
  }
  return scale;
}

}  // namespace sinter::cuda
