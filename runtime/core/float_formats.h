// The narrow floating-point formats, to and from double: float16, bfloat16, the float8 kinds and float4.
//
// Every finite number of these formats is exact in float (and double), and encoding rounds once, from the
// double, half to even. The saturating conversion from floating point to integers is here as well.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/core/dtype.h"

namespace sinter {

// The fields of a format: sign, exponent and mantissa. The codes below are without the sign bit.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  uint32_t max_code;  // the largest finite magnitude
  uint32_t inf_code;  // 0: no infinities
  uint32_t nan_code;  // 0: no NaN. Just the sign bit: no negative zero (the UZ kinds).

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr bool unsigned_zero() const { return nan_code == sign_bit(); }
};

inline constexpr FloatFormat kFloat16Format{5, 10, 15, 0x7bff, 0x7c00, 0x7e00};
inline constexpr FloatFormat kBFloat16Format{8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
inline constexpr FloatFormat kFloat8E4M3FNFormat{4, 3, 7, 0x7e, 0, 0x7f};
inline constexpr FloatFormat kFloat8E4M3FNUZFormat{4, 3, 8, 0x7f, 0, 0x80};
inline constexpr FloatFormat kFloat8E5M2Format{5, 2, 15, 0x7b, 0x7c, 0x7e};
inline constexpr FloatFormat kFloat8E5M2FNUZFormat{5, 2, 16, 0x7f, 0, 0x80};
inline constexpr FloatFormat kFloat4E2M1Format{2, 1, 1, 0x7, 0, 0};

// Returns 2^e for -1022 <= e <= 1023.
constexpr double power_of_two(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

// Returns the code of `x`. A number beyond the largest finite one becomes that one if `saturate` (infinities
// too), else an infinity or, in formats without, NaN. A format without NaN always saturates and encodes NaN
// as -0, like ml_dtypes.
template <FloatFormat F>
constexpr uint32_t encode_float(double x, bool saturate = false) {
  const uint64_t u = std::bit_cast<uint64_t>(x);
  const uint32_t sign = (u >> 63) != 0 ? F.sign_bit() : 0;
  const int raw = static_cast<int>(u >> 52 & 0x7ff);
  const uint64_t fraction = u & 0xfffffffffffffu;
  if (raw == 0x7ff && fraction != 0) {
    if constexpr (F.nan_code == 0) return F.sign_bit();
    if constexpr (F.unsigned_zero()) return F.nan_code;
    return sign | F.nan_code;
  }
  uint32_t code = 0;
  if (raw == 0x7ff) {
    code = F.max_code + 1;
  } else if (raw != 0) {  // double subnormals are far below half of any smallest number here
    constexpr int kLowest = 1 - F.bias;
    const int exponent = raw - 1023;
    const int base = exponent < kLowest ? kLowest : exponent;
    // value = significand * 2^(exponent - 52); the code's unit is 2^(base - mantissa_bits).
    const uint64_t significand = fraction | 1ull << 52;
    const int drop = 52 - F.mantissa_bits + (base - exponent);
    if (drop < 64) {
      const uint64_t kept = significand >> drop;
      const uint64_t rest = significand - (kept << drop), half = 1ull << (drop - 1);
      const uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
      const int64_t field = static_cast<int64_t>(base + F.bias - 1);
      const uint64_t wide = (static_cast<uint64_t>(field) << F.mantissa_bits) + rounded;
      code = wide > F.max_code ? F.max_code + 1 : static_cast<uint32_t>(wide);
    }
  }
  if (code > F.max_code) {
    if (saturate || F.nan_code == 0) return sign | F.max_code;
    if constexpr (F.inf_code != 0) return sign | F.inf_code;
    if constexpr (F.unsigned_zero()) return F.nan_code;
    return sign | F.nan_code;
  }
  if (code == 0 && F.unsigned_zero()) return 0;
  return sign | code;
}

template <FloatFormat F>
constexpr double decode_float(uint32_t bits) {
  const uint32_t code = bits & (F.sign_bit() - 1);
  const bool negative = (bits & F.sign_bit()) != 0;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if constexpr (F.unsigned_zero()) {
    if (bits == F.nan_code) return kNan;
  }
  if (code > F.max_code) return F.inf_code != 0 && code == F.inf_code ? (negative ? -kInf : kInf) : kNan;
  const uint32_t field = code >> F.mantissa_bits;
  const uint32_t mantissa = code & ((1u << F.mantissa_bits) - 1);
  const double magnitude = field == 0
                               ? static_cast<double>(mantissa) * power_of_two(1 - F.bias - F.mantissa_bits)
                               : static_cast<double>(mantissa | 1u << F.mantissa_bits) *
                                     power_of_two(static_cast<int>(field) - F.bias - F.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

inline uint16_t float16_bits(double x) { return static_cast<uint16_t>(encode_float<kFloat16Format>(x)); }
inline uint16_t bfloat16_bits(double x) { return static_cast<uint16_t>(encode_float<kBFloat16Format>(x)); }
inline float float16_value(uint16_t bits) { return static_cast<float>(decode_float<kFloat16Format>(bits)); }
inline float bfloat16_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// float8e8m0: 2^(code - 127) and NaN (255). Encoding ignores the sign and rounds up to the next power, as
// ONNX's Cast does by default; zero becomes the smallest power.
constexpr double decode_e8m0(uint8_t code) {
  return code == 255 ? std::numeric_limits<double>::quiet_NaN() : power_of_two(code - 127);
}
constexpr uint8_t encode_e8m0(double x, bool saturate = true) {
  const uint64_t u = std::bit_cast<uint64_t>(x) & ~(1ull << 63);
  const int raw = static_cast<int>(u >> 52);
  if (raw == 0x7ff) return 255;
  const int code = raw - 1023 + 127 + ((u & 0xfffffffffffffu) != 0 ? 1 : 0);
  if (code < 0) return 0;
  if (code > 254) return saturate ? 254 : 255;
  return static_cast<uint8_t>(code);
}

// Returns the number of a code of any float8 kind.
constexpr double float8_value(DType t, uint8_t code) {
  switch (t) {
    case DType::kFloat8E4M3FN:
      return decode_float<kFloat8E4M3FNFormat>(code);
    case DType::kFloat8E4M3FNUZ:
      return decode_float<kFloat8E4M3FNUZFormat>(code);
    case DType::kFloat8E5M2:
      return decode_float<kFloat8E5M2Format>(code);
    case DType::kFloat8E5M2FNUZ:
      return decode_float<kFloat8E5M2FNUZFormat>(code);
    default:
      return decode_e8m0(code);
  }
}

// Rounds towards zero. A number out of range becomes the nearest end, NaN becomes 0.
template <class Int>
constexpr Int saturate_to(double x) {
  static_assert(std::is_integral_v<Int>);
  using Limits = std::numeric_limits<Int>;
  // 2^digits is exact, max() of a 64-bit type is not.
  constexpr double kEnd = power_of_two(Limits::digits);
  constexpr double kLowest = std::is_signed_v<Int> ? -kEnd : 0.0;
  if (x != x) return 0;
  if (x >= kEnd) return Limits::max();
  if (x <= kLowest) return Limits::min();
  return static_cast<Int>(x);
}

// Returns a double that rounds to any narrower format as `v` itself would: where `v` has too many bits, the
// last bit that fits is set if anything was cut (rounding to odd).
constexpr double sticky_double(uint64_t v) {
  // std::countl_zero is not used: nvcc's gives 64 for every number on the device.
  int drop = 0;
  while (v >> drop >= 1ull << 53) ++drop;
  if (drop == 0) return static_cast<double>(v);
  const uint64_t kept = v >> drop;
  const bool cut = (kept << drop) != v;
  return static_cast<double>(kept | (cut ? 1u : 0u)) * power_of_two(drop);
}
constexpr double sticky_double(int64_t v) {
  return v < 0 ? -sticky_double(~static_cast<uint64_t>(v) + 1) : sticky_double(static_cast<uint64_t>(v));
}

}  // namespace sinter
