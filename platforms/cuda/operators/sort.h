// Sorting of lines of elements, for the operations that search.
#pragma once

#include "platforms/cuda/lowering.h"

namespace sinter::cuda {

// Returns whether lines of the type's elements can be sorted.
constexpr bool is_sorted(DType dtype) {
  return is_wide_float(dtype) || is_integer(dtype) || dtype == DType::kBool;
}

struct SortedLines {
  SortRecords records;
  uint32_t pitch = 0;  // records from a line to the next
};
// Adds launches that sort lines of elements, at least their first `keep` records. `elements` has x, type,
// descending, inner, length and lines, and the fields that filter them.
Status add_sort(Lowering& l, const SortChunksArguments& elements, int64_t keep, SortedLines* sorted);

}  // namespace sinter::cuda
