// DType: the element types that a file may hold. The numbers are written into files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinter {

enum class DType : uint8_t {
  kNone = 0,  // an absent operand
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,
  kBFloat16 = 4,
  kInt8 = 5,
  kUint8 = 6,
  kInt16 = 7,
  kUint16 = 8,
  kInt32 = 9,
  kUint32 = 10,
  kInt64 = 11,
  kUint64 = 12,
  kBool = 13,  // one byte, 0 or 1
  kFloat8E4M3FN = 14,
  kFloat8E4M3FNUZ = 15,
  kFloat8E5M2 = 16,
  kFloat8E5M2FNUZ = 17,
  kFloat8E8M0 = 18,
  // Sub-byte types are packed, low bits first; they exist as constants only.
  kInt4 = 19,
  kUint4 = 20,
  kInt2 = 21,
  kUint2 = 22,
  kFloat4E2M1 = 23,
  kCount = 24,
};

// Returns the bits of an element; 0 for kNone and unknown numbers.
constexpr int bit_width(DType t) {
  switch (t) {
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUint64:
      return 64;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUint32:
      return 32;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
    case DType::kUint16:
      return 16;
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
      return 8;
    case DType::kInt4:
    case DType::kUint4:
    case DType::kFloat4E2M1:
      return 4;
    case DType::kInt2:
    case DType::kUint2:
      return 2;
    default:
      return 0;
  }
}

// Returns the bytes of an element; 0 for packed sub-byte types.
constexpr size_t byte_width(DType t) { return static_cast<size_t>(bit_width(t)) / 8; }

constexpr bool is_wide_float(DType t) { return t == DType::kFloat32 || t == DType::kFloat64; }
constexpr bool is_float8(DType t) { return t >= DType::kFloat8E4M3FN && t <= DType::kFloat8E8M0; }
// Returns whether the type is a floating-point type, those included that only constants hold.
constexpr bool is_float(DType t) {
  return (t >= DType::kFloat32 && t <= DType::kBFloat16) || is_float8(t) || t == DType::kFloat4E2M1;
}
constexpr bool is_sub_byte(DType t) { return t >= DType::kInt4 && t <= DType::kFloat4E2M1; }
// Returns whether the type is an integer of whole bytes; bool is not one.
constexpr bool is_integer(DType t) { return t >= DType::kInt8 && t <= DType::kUint64; }
constexpr bool is_signed_integer(DType t) {
  return t == DType::kInt8 || t == DType::kInt16 || t == DType::kInt32 || t == DType::kInt64;
}

// Returns "float32", "int8", ... as NumPy and ONNX write them; "none" for kNone, "?" for unknown numbers.
const char* dtype_name(DType t);

}  // namespace sinter
