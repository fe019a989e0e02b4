// Sorting of lines of elements, for the operations that search.
#pragma once

#include "platforms/cuda/lowering.h"

namespace sinter::cuda {

// False: elements of the type are not sorted.
bool sort_type_of(DType dtype, SortType* type);

struct SortedLines {
  SortRecords records;
  uint32_t pitch = 0;  // records from a line to the next
};
// Adds launches that sort lines of elements, at least their first `keep` records. `elements`: x, type,
// descending, inner, length and lines, and what filters them.
Status add_sort(Lowering& l, const SortChunksArguments& elements, int64_t keep, SortedLines* sorted);

}  // namespace sinter::cuda
