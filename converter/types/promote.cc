#include "converter/types/promote.h"

#include <algorithm>

#include "converter/types/representable.h"

namespace sinter::convert {
namespace {

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

}  // namespace sinter::convert
