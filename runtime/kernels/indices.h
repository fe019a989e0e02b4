// For kernels with index operands: reads an index of either width and checks it where it is used.
#pragma once

#include "runtime/kernels/support.h"

namespace sinter {

constexpr bool is_index_type(DType t) { return t == DType::kInt64 || t == DType::kInt32; }

inline int64_t load_index(const std::byte* p, DType t) {
  return t == DType::kInt32 ? load<int32_t>(p) : load<int64_t>(p);
}

// Reads an index into a dim of `dim` elements; a negative one counts from the end.
inline Status read_index(const std::byte* p, DType t, int64_t dim, int64_t* index) {
  const int64_t given = load_index(p, t);
  *index = given < 0 ? given + dim : given;
  SINTER_RETURN_UNLESS(*index >= 0 && *index < dim,
                       error(Code::kOutOfRange, "index %a is outside an axis of %b elements", given, dim));
  return ok_status();
}

// Product of dims [begin, end) of a verified view.
inline int64_t product(const TensorView& v, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= v.dims[i];
  return n;
}

// Refuses elements of less than a byte.
inline Status check_whole_bytes(DType t) {
  SINTER_RETURN_UNLESS(byte_width(t) != 0, unsupported("elements of packed type number %a are not moved",
                                                       static_cast<int64_t>(t)));
  return ok_status();
}

}  // namespace sinter
