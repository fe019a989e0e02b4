// Arguments of kernels/index/find.cu: selected elements move to the front, in their order.
//
// Elements are gone through in chunks, one a block. The first pass counts the selected elements of each
// chunk, the second one adds up the counts, and the third one finds each selected element's place by them.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "platforms/cuda/kernels/index/sort.h"

namespace sinter::cuda {

inline constexpr int kSelectChunk = 2048;

// counts[chunk] becomes the number of elements before the chunk, and *total that of all.
struct AddCountsArguments {
  uint32_t* counts = nullptr;
  uint32_t chunks = 0;
  int64_t* total = nullptr;  // null: not wanted
};

// The elements of `x` that are not zero.
struct NonZeroArguments {
  const std::byte* x = nullptr;
  Box box;
  Steps steps;
  Divider dims[kBoxRank];  // of the indices, which are not merged
  int32_t rank = 0;
  int32_t width = 4, is_float = 0;
  uint32_t* counts = nullptr;
  int64_t* indices = nullptr;  // [rank, elements]
};

// Groups of equal keys of sorted records: each begins with its first element.
struct UniqueArguments {
  SortRecords records;
  uint32_t length = 0;
  uint32_t* counts = nullptr;    // for the chunks of records, or of elements if `by_place`
  uint32_t* group_of = nullptr;  // of each element
  uint32_t* start_of = nullptr;  // of each group: its first record
  uint32_t* is_first = nullptr;  // for each element: 1 if it is its group's first; null: groups stay in the
                                 // order of their keys
  uint32_t* rank_of = nullptr;   // for each element that is its group's first: its group's place
  const int64_t* groups = nullptr;
  const std::byte* x = nullptr;
  std::byte* values = nullptr;  // results; null: not wanted
  int64_t* firsts = nullptr;
  int64_t* inverse = nullptr;
  int64_t* sizes = nullptr;
  int32_t width = 4;
};

}  // namespace sinter::cuda
