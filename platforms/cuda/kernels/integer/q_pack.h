// Arguments of kernels/integer/q_pack.cu, and the origin of packed weights, for the host and the device.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/grid/divider.h"

namespace sinter::cuda {

// The weights of a filter [taps..., channels] that a product reads: of each axis every step-th tap from
// `first` on.
struct FilterTaps {
  Divider channels, taps1, taps2;     // of the product, the last two axes
  uint32_t kernel1 = 1, kernel2 = 1;  // of the filter
  uint32_t first[3] = {}, step[3] = {1, 1, 1};

  // Returns the place in the filter of the product's element k.
  SINTER_BOTH uint32_t place(uint32_t k) const {
    uint32_t channel, t1, t2;
    const uint32_t tap = channels.divide(k, &channel);
    const uint32_t line = taps2.divide(tap, &t2);
    const uint32_t t0 = taps1.divide(line, &t1);
    const uint32_t at0 = first[0] + t0 * step[0], at1 = first[1] + t1 * step[1],
                   at2 = first[2] + t2 * step[2];
    return ((at0 * kernel1 + at1) * kernel2 + at2) * channels.divisor + channel;
  }
};

// Computes to[o, k] = from[o, place(k)] for k < depth, 0 up to the pitch: int8.
struct QPackArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  FilterTaps taps;
  uint32_t columns = 0, depth = 0, filter = 0;  // elements of a filter
  Divider pitch;
};

// to[n, k] = from[k, n], or from[n, k], for k < depth, `fill` up to the pitch, of each of several matrices.
struct QTurnArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint32_t columns = 0, depth = 0, pitch = 0;
  int32_t width = 1;   // bytes: 1 or 2
  int32_t across = 0;  // 1: from[k, n]
  int32_t fill = 0;
};

}  // namespace sinter::cuda
