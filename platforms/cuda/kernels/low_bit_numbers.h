// How kernels of low-bit weights read their operands.
#pragma once

#include "platforms/cuda/kernels/low_bit.h"
#include "platforms/cuda/kernels/requantize.h"

namespace sinter::cuda {

// Element i of an operand of x's type, as float.
SINTER_DEVICE float load_float(const std::byte* from, FloatKind kind, int64_t i) {
  if (kind == FloatKind::kFloat) return reinterpret_cast<const float*>(from)[i];
  if (kind == FloatKind::kHalf) return widen(reinterpret_cast<const Float16*>(from)[i]);
  return widen(reinterpret_cast<const BFloat16*>(from)[i]);
}

// The number of `bits` bits at place i.
SINTER_DEVICE int32_t low_bit_integer(const std::byte* from, int bits, bool is_signed, int64_t i) {
  auto v = static_cast<int32_t>(bits == 4 ? static_cast<uint32_t>(from[i / 2]) >> (i % 2 * 4) & 15
                                          : static_cast<uint32_t>(from[i]));
  const int32_t top = 1 << (bits - 1);
  if (is_signed && v >= top) v -= 2 * top;
  return v;
}

// What a weight's number is multiplied by after `zero` was taken from it.
struct LowBitScale {
  float scale = 0, zero = 0;
};
SINTER_DEVICE LowBitScale low_bit_scale(const LowBitArguments& a, uint32_t column, uint32_t k) {
  const int64_t at = int64_t{column} * a.blocks + a.block_size.divide(k);
  LowBitScale s;
  s.scale = load_float(a.scales, a.kind, at);
  if (a.zeros == nullptr) return s;
  s.zero = a.float_zeros != 0 ? load_float(a.zeros, a.kind, at)
                              : static_cast<float>(low_bit_integer(a.zeros, a.bits, a.is_signed != 0, at));
  return s;
}

// A word's number i (of 8 of 4 bits, or 4 of 8), less `zero`. What is put below 2^23's exponent is added to
// 2^23, so that no conversion is needed: `base` is 2^23 and what signed numbers have more once their highest
// bit is flipped. Where `zero` is an integer, base + zero is exact.
struct LowBitReader {
  uint32_t flip = 0;  // of a word
  float base = 8388608.0f;

  SINTER_DEVICE LowBitReader(int bits, bool is_signed) {
    if (!is_signed) return;
    flip = bits == 4 ? 0x88888888u : 0x80808080u;
    base += bits == 4 ? 8.0f : 128.0f;
  }
  template <int kBits>
  SINTER_DEVICE static float raised(uint32_t flipped, int i) {
    constexpr uint32_t kExponent = 0x4B000000u;
    if constexpr (kBits == 4)
      return float_of((flipped >> (4 * i) & 15) | kExponent);
    else
      return float_of(select_bytes(flipped, kExponent, 0x7650 + static_cast<uint32_t>(i)));
  }
};

// A sum with the column's bias, clamped.
SINTER_DEVICE float low_bit_result(const LowBitArguments& a, uint32_t column, float sum) {
  if (a.bias != nullptr) sum += load_float(a.bias, a.kind, column);
  const auto low = static_cast<float>(a.low), high = static_cast<float>(a.high);
  return sum < low ? low : sum > high ? high : sum;
}
SINTER_DEVICE void store_low_bit(const LowBitArguments& a, uint32_t row, uint32_t column, float sum) {
  const float v = low_bit_result(a, column, sum);
  const int64_t at = int64_t{row} * a.columns + column;
  if (a.kind == FloatKind::kFloat)
    reinterpret_cast<float*>(a.y)[at] = v;
  else if (a.kind == FloatKind::kHalf)
    narrow(v, reinterpret_cast<Float16*>(a.y) + at);
  else
    narrow(v, reinterpret_cast<BFloat16*>(a.y) + at);
}

}  // namespace sinter::cuda
