#include "converter/types/promote.h"

#include <algorithm>

namespace sinter::convert {
namespace {

// Sub-byte integers count as int8 / uint8, 8-bit floats as float32 (nothing computes in them).
DType computable(DType t) {
  switch (t) {
    case DType::kInt4:
    case DType::kInt2:
      return DType::kInt8;
    case DType::kUint4:
    case DType::kUint2:
      return DType::kUint8;
    default:
      return is_float8(t) || t == DType::kFloat4E2M1 ? DType::kFloat32 : t;
  }
}

DType signed_of_bits(int bits) {
  return bits <= 8 ? DType::kInt8 : bits <= 16 ? DType::kInt16 : bits <= 32 ? DType::kInt32 : DType::kInt64;
}

}  // namespace

std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::kNone || b == DType::kNone) return std::nullopt;
  a = computable(a), b = computable(b);
  if (a == b) return a;
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  if (is_float(a) && is_float(b)) {
    if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
    return DType::kFloat32;
  }
  if (is_float(a) || is_float(b)) {
    const DType f = is_float(a) ? a : b, i = is_float(a) ? b : a;
    if (is_wide_float(f) || bit_width(i) <= 8) return f;
    return DType::kFloat32;
  }
  const bool signed_a = is_signed_integer(a), signed_b = is_signed_integer(b);
  if (signed_a == signed_b) return bit_width(a) > bit_width(b) ? a : b;
  const DType s = signed_a ? a : b, u = signed_a ? b : a;
  if (u == DType::kUint64) return std::nullopt;
  return signed_of_bits(std::max(bit_width(s), 2 * bit_width(u)));
}

std::optional<DType> promote_values(DType a, DType b) {
  const auto type = promote(a, b);
  if (!type || a == b || is_float(a) == is_float(b)) return type;
  const DType integer = is_float(a) ? b : a;
  return integer != DType::kBool && bit_width(integer) > 16 ? DType::kFloat64 : type;
}

}  // namespace sinter::convert
