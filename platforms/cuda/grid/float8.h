// Floating-point numbers of 8 bits in kernels, and their values as float, which holds each of them.
//
// Shifted to the place of float's exponent and mantissa, exponent and mantissa of a narrow format are its
// number times a power of two, subnormal numbers included.
#pragma once

#include "platforms/cuda/grid/grid.h"

namespace sinter::cuda {

struct Float8E4M3FN {
  uint8_t bits;
};
struct Float8E4M3FNUZ {
  uint8_t bits;
};
struct Float8E5M2 {
  uint8_t bits;
};
struct Float8E5M2FNUZ {
  uint8_t bits;
};

struct Float8E8M0 {  // an exponent
  uint8_t bits;
};

namespace float8 {
inline constexpr uint32_t kNan = 0x7fc00000u;
// Returns 2^n of a normal float.
SINTER_DEVICE float power(int n) { return float_of(static_cast<uint32_t>(n + 127) << 23); }
SINTER_DEVICE float magnitude(uint32_t bits, int mantissa, int bias) {
  return float_of((bits & 127) << (23 - mantissa)) * power(127 - bias);
}
SINTER_DEVICE float with_sign(float magnitude, uint32_t bits) {
  return float_of(bits_of(magnitude) | (bits & 128) << 24);
}
}  // namespace float8

SINTER_DEVICE float widen(Float8E4M3FN v) {
  const float m = (v.bits & 127) == 127 ? float_of(float8::kNan) : float8::magnitude(v.bits, 3, 7);
  return float8::with_sign(m, v.bits);
}
// The FNUZ formats have one NaN, in the place of a negative zero.
SINTER_DEVICE float widen(Float8E4M3FNUZ v) {
  if (v.bits == 128) return float_of(float8::kNan);
  return float8::with_sign(float8::magnitude(v.bits, 3, 8), v.bits);
}
SINTER_DEVICE float widen(Float8E5M2FNUZ v) {
  if (v.bits == 128) return float_of(float8::kNan);
  return float8::with_sign(float8::magnitude(v.bits, 2, 16), v.bits);
}
// These bits are the upper half of a float16.
SINTER_DEVICE float widen(Float8E5M2 v) {
  return widen(Float16{static_cast<uint16_t>(static_cast<uint32_t>(v.bits) << 8)});
}

SINTER_DEVICE float widen(Float8E8M0 v) {
  if (v.bits == 255) return float_of(float8::kNan);
  return float_of(v.bits == 0 ? 0x00400000u : static_cast<uint32_t>(v.bits) << 23);
}

SINTER_DEVICE float widen(int8_t v) { return static_cast<float>(v); }

}  // namespace sinter::cuda
