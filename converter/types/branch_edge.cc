#include "converter/types/branch_edge.h"

#include "converter/types/promote.h"
#include "converter/types/representable.h"

namespace sinter::convert {

std::optional<DType> meet_at_edge(const Value& a, const Value& b) {
  if (a.constant && is_float(b.dtype) && survives(*a.constant, b.dtype, true)) return b.dtype;
  if (b.constant && is_float(a.dtype) && survives(*b.constant, a.dtype, true)) return a.dtype;
  const auto type = promote(a.dtype, b.dtype);
  if (!type || a.dtype == b.dtype || is_float(a.dtype) == is_float(b.dtype)) return type;
  const DType integer = is_float(a.dtype) ? b.dtype : a.dtype;
  return integer != DType::kBool && bit_width(integer) > 16 ? DType::kFloat64 : type;
}

}  // namespace sinter::convert
