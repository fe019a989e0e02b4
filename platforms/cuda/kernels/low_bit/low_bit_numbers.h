// The reading of operands by kernels of low-bit weights.
#pragma once

#include "platforms/cuda/kernels/index/expert_of_row.h"
#include "platforms/cuda/kernels/integer/requantize.h"
#include "platforms/cuda/kernels/low_bit/low_bit.h"
#include "platforms/cuda/kernels/product/narrow_weight.h"

namespace sinter::cuda {

// Returns element i of an operand of x's type, as float.
SINTER_DEVICE float load_float(const std::byte* from, FloatKind kind, int64_t i) {
  if (kind == FloatKind::kFloat) return reinterpret_cast<const float*>(from)[i];
  if (kind == FloatKind::kHalf) return widen(reinterpret_cast<const Float16*>(from)[i]);
  return widen(reinterpret_cast<const BFloat16*>(from)[i]);
}

// Returns element i of the scales.
SINTER_DEVICE float load_scale(const LowBitArguments& a, int64_t i) {
  if (a.scale_type == DType::kFloat32) return reinterpret_cast<const float*>(a.scales)[i];
  if (a.scale_type == DType::kFloat8E8M0)
    return widen(Float8E8M0{reinterpret_cast<const uint8_t*>(a.scales)[i]});
  return narrow_weight(a.scales, a.scale_type, i);
}

// Returns the number of 2, 4 or 8 bits at place i.
SINTER_DEVICE int32_t low_bit_integer(const std::byte* from, int bits, bool is_signed, int64_t i) {
  const auto place = static_cast<uint32_t>(i);
  const uint32_t of_byte = bits == 2 ? 4 : bits == 4 ? 2 : 1;
  const auto byte = static_cast<uint32_t>(from[of_byte == 1 ? i : i / of_byte]);
  auto v = static_cast<int32_t>(byte >> (place % of_byte * static_cast<uint32_t>(bits)) & ((1u << bits) - 1));
  const int32_t top = 1 << (bits - 1);
  if (is_signed && v >= top) v -= 2 * top;
  return v;
}

// The factor of a weight's number after `zero` is subtracted from it.
struct LowBitScale {
  float scale = 0, zero = 0;
};
// `column` is the one among those of all experts.
SINTER_DEVICE LowBitScale low_bit_scale(const LowBitArguments& a, int64_t column, uint32_t k) {
  const int64_t at = column * a.blocks + a.block_size.divide(k);
  LowBitScale s;
  s.scale = load_scale(a, at);
  if (a.zeros == nullptr) return s;
  s.zero = a.float_zeros != 0
               ? load_float(a.zeros, a.kind, at)
               : static_cast<float>(low_bit_integer(a.zeros, a.zero_bits, a.format.is_signed(), at));
  return s;
}

// Returns number i of a segment in planes, from its words. The compiler leaves out planes not in `kBits`.
template <int kBits>
SINTER_DEVICE uint32_t plane_number(const uint32_t (&words)[kBits], int i) {
  uint32_t v = 0;
  if constexpr (kBits >= 5) v = words[i / 8] >> (i % 8 * 4) & 15;
  if constexpr (low_bit_has_twos(kBits))
    v |= (words[low_bit_twos(kBits) + i / 16] >> (i % 16 * 2) & 3) << low_bit_twos(kBits);
  if constexpr (low_bit_has_ones(kBits)) v |= (words[low_bit_ones(kBits)] >> i & 1) << (kBits - 1);
  return v;
}

// Returns numbers k to k + 15 of a row in planes, a byte each; k is a multiple of 16.
template <int kBits>
SINTER_DEVICE Words<16> sixteen_of_planes(const std::byte* row, uint32_t k) {
  uint32_t words[kBits];
  SINTER_UNROLL
  for (int i = 0; i < kBits; ++i)
    words[i] = reinterpret_cast<const uint32_t*>(row)[k / 32 * kBits + static_cast<uint32_t>(i)];
  const bool upper = k % 32 != 0;
  Words<16> v = {};
  SINTER_UNROLL
  for (int i = 0; i < 16; ++i)
    v.w[i / 4] |= (upper ? plane_number<kBits>(words, i + 16) : plane_number<kBits>(words, i)) << (i % 4 * 8);
  return v;
}
SINTER_DEVICE Words<16> sixteen_of_planes(int bits, const std::byte* row, uint32_t k) {
  switch (bits) {
    case 2:
      return sixteen_of_planes<2>(row, k);
    case 3:
      return sixteen_of_planes<3>(row, k);
    case 5:
      return sixteen_of_planes<5>(row, k);
    case 6:
      return sixteen_of_planes<6>(row, k);
    default:
      return sixteen_of_planes<7>(row, k);
  }
}

// A reader of a word's number i (of 8 of 4 bits, or 4 of 8), less `zero`. Bits below the exponent of 2^23 are
// added to 2^23, so that no conversion is needed: `base` is 2^23, plus the number by which signed numbers
// grow when their highest bit is flipped. If `zero` is an integer, base + zero is exact.
struct LowBitReader {
  uint32_t flip = 0;  // for a word
  float base = 8388608.0f;

  SINTER_DEVICE LowBitReader(int bits, bool is_signed) {
    if (!is_signed) return;
    flip = bits == 4 ? 0x88888888u : bits == 8 ? 0x80808080u : 0;  // in planes, bits are flipped already
    base += static_cast<float>(1 << (bits - 1));
  }
  SINTER_DEVICE static float raised(uint32_t number) { return float_of(number | 0x4B000000u); }
  template <int kBits>
  SINTER_DEVICE static float raised(uint32_t flipped, int i) {
    constexpr uint32_t kExponent = 0x4B000000u;
    if constexpr (kBits == 4)
      return float_of((flipped >> (4 * i) & 15) | kExponent);
    else
      return float_of(select_bytes(flipped, kExponent, 0x7650 + static_cast<uint32_t>(i)));
  }
};

// Returns the first column of a row's expert.
SINTER_DEVICE int64_t first_column_of_expert(const LowBitArguments& a, uint32_t row) {
  return a.experts.of_row == nullptr ? 0 : expert_of_row(a.experts, row) * a.columns;
}

// Returns a sum with the column's bias, clamped.
SINTER_DEVICE float low_bit_result(const LowBitArguments& a, int64_t column, float sum) {
  if (a.bias != nullptr) sum += load_float(a.bias, a.kind, column);
  const auto low = static_cast<float>(a.low), high = static_cast<float>(a.high);
  return sum < low ? low : sum > high ? high : sum;
}
SINTER_DEVICE void store_low_bit(const LowBitArguments& a, uint32_t row, uint32_t column, float sum,
                                 int64_t first_of_expert = 0) {
  const float v = low_bit_result(a, first_of_expert + column, sum);
  const int64_t at = int64_t{row} * a.columns + column;
  if (a.kind == FloatKind::kFloat)
    reinterpret_cast<float*>(a.y)[at] = v;
  else if (a.kind == FloatKind::kHalf)
    narrow(v, reinterpret_cast<Float16*>(a.y) + at);
  else
    narrow(v, reinterpret_cast<BFloat16*>(a.y) + at);
}

}  // namespace sinter::cuda
