// The conversion of integer kernels' sums to their results: y = clamp(rne(value) + y_zero, q_min, q_max),
// with the bits of the reference kernels (docs/numerics.md).
#pragma once

#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/integer/integer_result.h"

namespace sinter::cuda {

// Returns rne(clamp(value, low, high)) for integer bounds of at most 2^22 in size; NaN gives the lower one.
SINTER_DEVICE int32_t round_clamped(float value, float low, float high) {
  const float v = !(value > low) ? low : value < high ? value : high;
  // The last bits of a number that is added to 1.5 * 2^23 are its nearest integer, half to even.
  return static_cast<int32_t>(bits_of(v + 12582912.0f)) - 0x4B400000;
}

// Returns v / 2^shift, rounded half to even; shift 0 to 30, |v| <= 2^30.
SINTER_DEVICE int32_t shift_right_rne(int32_t v, int shift) {
  if (shift == 0) return v;
  return (v + (1 << (shift - 1)) - 1 + (v >> shift & 1)) >> shift;
}

SINTER_DEVICE int32_t integer_of(const IntegerResult& r, float value) {
  return round_clamped(value, r.low, r.high) + r.zero;
}

// Stores element i of y.
SINTER_DEVICE void store_result(const IntegerResult& r, std::byte* y, int64_t i, float value) {
  if (r.width == 4)
    reinterpret_cast<float*>(y)[i] = value;
  else if (r.width == 1)
    reinterpret_cast<int8_t*>(y)[i] = static_cast<int8_t>(integer_of(r, value));
  else
    reinterpret_cast<int16_t*>(y)[i] = static_cast<int16_t>(integer_of(r, value));
}

// Sixteen, eight or four bytes that are read or written at once.
template <int kBytes>
struct alignas(kBytes) Words {
  uint32_t w[kBytes / 4];
};
SINTER_DEVICE bool is_aligned(const void* p, uint32_t bytes) {
  return (reinterpret_cast<uintptr_t>(p) & (bytes - 1)) == 0;
}

// The same for an address that may be a multiple of less: bytes are moved one by one.
template <int kBytes>
SINTER_DEVICE Words<kBytes> load_words(const std::byte* from, bool aligned) {
  if (aligned) return *reinterpret_cast<const Words<kBytes>*>(from);
  Words<kBytes> v;
  SINTER_UNROLL
  for (int w = 0; w < kBytes / 4; ++w) {
    v.w[w] = 0;
    SINTER_UNROLL
    for (int b = 0; b < 4; ++b) v.w[w] |= static_cast<uint32_t>(from[4 * w + b]) << (8 * b);
  }
  return v;
}

// Stores kCount (a multiple of 4) adjacent elements from element i of y on, whose address is a multiple of
// their bytes, or of 16 if they have more.
template <int kCount>
SINTER_DEVICE void store_results(const IntegerResult& r, std::byte* y, int64_t i,
                                 const float (&value)[kCount]) {
  if (r.width == 4) {
    SINTER_UNROLL
    for (int n = 0; n < kCount; n += 4)
      *reinterpret_cast<Words<16>*>(y + (i + n) * 4) = {
          {bits_of(value[n]), bits_of(value[n + 1]), bits_of(value[n + 2]), bits_of(value[n + 3])}};
  } else if (r.width == 1) {
    constexpr int kBytes = kCount < 16 ? kCount : 16;
    SINTER_UNROLL
    for (int n = 0; n < kCount; n += kBytes) {
      Words<kBytes> all;
      SINTER_UNROLL
      for (int w = 0; w < kBytes / 4; ++w) {
        uint32_t v[4];
        SINTER_UNROLL
        for (int b = 0; b < 4; ++b) v[b] = static_cast<uint32_t>(integer_of(r, value[n + 4 * w + b]));
        all.w[w] = select_bytes(select_bytes(v[0], v[1], 0x0040), select_bytes(v[2], v[3], 0x0040), 0x5410);
      }
      *reinterpret_cast<Words<kBytes>*>(y + i + n) = all;
    }
  } else {
    constexpr int kBytes = 2 * kCount < 16 ? 2 * kCount : 16;
    SINTER_UNROLL
    for (int n = 0; n < kCount; n += kBytes / 2) {
      Words<kBytes> all;
      SINTER_UNROLL
      for (int w = 0; w < kBytes / 4; ++w)
        all.w[w] = select_bytes(static_cast<uint32_t>(integer_of(r, value[n + 2 * w])),
                                static_cast<uint32_t>(integer_of(r, value[n + 2 * w + 1])), 0x5410);
      *reinterpret_cast<Words<kBytes>*>(y + (i + n) * 2) = all;
    }
  }
}

}  // namespace sinter::cuda
