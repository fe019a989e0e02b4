// Index operands of kernels: int32 or int64, each index checked where it is used.
#pragma once

#include <cstring>

#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace sinter {

constexpr bool is_index_type(DType t) { return t == DType::kInt64 || t == DType::kInt32; }

inline int64_t load_index(const std::byte* p, DType t) {
  int64_t wide = 0;
  int32_t narrow = 0;
  if (t != DType::kInt32) return std::memcpy(&wide, p, sizeof(wide)), wide;
  return std::memcpy(&narrow, p, sizeof(narrow)), narrow;
}

// Reads an index into a dim of `dim` elements; a negative one counts from the end.
inline Status read_index(const std::byte* p, DType t, int64_t dim, int64_t* index) {
  const int64_t given = load_index(p, t);
  *index = given < 0 ? given + dim : given;
  SINTER_RETURN_UNLESS(*index >= 0 && *index < dim,
                       error(Code::kOutOfRange, "index %a is outside an axis of %b elements", given, dim));
  return ok_status();
}

}  // namespace sinter
