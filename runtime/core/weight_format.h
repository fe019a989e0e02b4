// The formats of weights of few bits: the rows of schemas/weight_formats.def.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/bit_rows.h"
#include "runtime/core/float_formats.h"

namespace sinter {

enum class CodeKind : uint8_t { kUnsigned, kSigned, kFloat, kTable };

struct WeightFormat {
  DType type = DType::kUint8;  // the type of the operand's elements
  uint8_t bits = 8;            // the bits of a code
  CodeKind kind = CodeKind::kUnsigned;

  constexpr bool operator==(const WeightFormat&) const = default;
  constexpr bool is_integer() const { return kind == CodeKind::kUnsigned || kind == CodeKind::kSigned; }
  constexpr bool is_signed() const { return kind == CodeKind::kSigned; }
  constexpr bool has_table() const { return kind == CodeKind::kTable; }
  constexpr bool in_planes() const { return bits != bit_width(type); }
  // Returns LowBitFullyConnectedAttrs::bits.
  constexpr int64_t attribute() const { return in_planes() ? bits : 0; }
  // Returns the smallest number of codes that take whole bytes, in every plane.
  constexpr int64_t unit() const { return in_planes() ? 8 : 8 / bits; }
  // Returns the operand's elements for a row of `depth` codes.
  constexpr int64_t row_elements(int64_t depth) const {
    return in_planes() ? bit_row_bytes(bits, depth) : depth;
  }
  // Returns the bit whose inversion makes a signed code unsigned, and back.
  constexpr unsigned sign_bit() const { return is_signed() ? 1u << (bits - 1) : 0; }
};

inline constexpr WeightFormat kWeightFormats[] = {
#define SINTER_WEIGHT_FORMAT(name, type, bits, kind) {DType::k##type, bits, CodeKind::k##kind},
#include "schemas/weight_formats.def"
#undef SINTER_WEIGHT_FORMAT
};

// The length of the tables that codes index, whatever the codes' bits.
inline constexpr int64_t kWeightTableSize = 16;

// Returns the format of an operand of type `type`, with LowBitFullyConnectedAttrs::bits, that may index a
// table, or null if there is none.
constexpr const WeightFormat* find_weight_format(DType type, int64_t attribute, bool has_table) {
  for (const WeightFormat& f : kWeightFormats)
    if (f.type == type && f.attribute() == attribute && f.has_table() == has_table) return &f;
  return nullptr;
}
// Returns the format of codes of `bits` bits and this kind, of which there is one.
constexpr WeightFormat weight_format(int bits, CodeKind kind) {
  for (const WeightFormat& f : kWeightFormats)
    if (f.bits == bits && f.kind == kind) return f;
  return {};
}

// Returns code k of row `row` of an operand of rows of `depth` codes.
constexpr unsigned weight_code(WeightFormat f, const uint8_t* weights, int64_t depth, int64_t row,
                               int64_t k) {
  if (f.in_planes()) return bit_row_item(weights + row * f.row_elements(depth), f.bits, depth, k);
  const int64_t at = row * depth + k;
  return bit_rows_detail::plane_item(weights, f.bits, at);
}
constexpr int code_integer(WeightFormat f, unsigned code) {
  return static_cast<int>(code ^ f.sign_bit()) - static_cast<int>(f.sign_bit());
}
// Returns the number of a code that is not an index.
constexpr double code_number(WeightFormat f, unsigned code) {
  if (f.kind != CodeKind::kFloat) return code_integer(f, code);
  return f.type == DType::kFloat4E2M1 ? decode_float<kFloat4E2M1Format>(code)
                                      : float8_value(f.type, static_cast<uint8_t>(code));
}

}  // namespace sinter
