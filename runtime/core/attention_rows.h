// The rows of Attention's keys and values, as every platform reads them. An item in memory is an element, or
// a pair of elements.
#pragma once

#include <cstdint>

#include "runtime/core/dtype.h"

namespace sinter {

// Returns whether an item is a byte that holds two elements of 4 bits: each plus kAttentionMiddle, the even
// one in the low half.
constexpr bool holds_pairs(DType rows) { return rows == DType::kUint8; }
inline constexpr int kAttentionMiddle = 8;

// Returns the number of elements in a row of `items` items.
constexpr int64_t row_elements(DType rows, int64_t items) { return holds_pairs(rows) ? 2 * items : items; }

// Returns whether keys or values of this type are narrower than the queries, and widened to their type.
constexpr bool is_narrow(DType rows, DType queries) {
  const bool known = rows == DType::kFloat16 || rows == DType::kBFloat16 || rows == DType::kFloat8E4M3FN ||
                     rows == DType::kInt8 || holds_pairs(rows);
  return known && byte_width(rows) < byte_width(queries);
}

}  // namespace sinter
