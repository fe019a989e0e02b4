// Arguments of kernels/index/sort.cu.
//
// The kernels sort lines of records: a key and the number of the element, which decides between equal keys.
// No two records are equal, so that there is one result.
#pragma once

#include <cstddef>

#include "platforms/cuda/grid/divider.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

struct SortRecords {
  uint64_t* keys = nullptr;
  uint32_t* numbers = nullptr;
};
inline constexpr uint64_t kNoKey = ~uint64_t{0};  // the key of padding, and of elements that do not count

// A block sorts a chunk of a line in shared memory.
inline constexpr int kSortChunk = 1024;
inline constexpr int kSortRecordBytes = 12;

// Sorts chunks of lines, and writes the first `keep` records of each, chunk behind chunk.
struct SortChunksArguments {
  // The input is either elements, lines of `length`, which are `inner` elements apart from each other, [..,
  // length, inner],
  const std::byte* x = nullptr;
  DType type = DType::kFloat32;
  int32_t descending = 0;
  Divider inner;
  int32_t filtered = 0;  // an element counts if it exceeds *limit, or, without a limit, if it is a number
  const std::byte* limit = nullptr;  // float32, or float64
  int32_t limit_double = 0;
  // or records.
  SortRecords from;
  uint32_t from_pitch = 0;  // records from a line to the next
  uint32_t length = 0;
  uint32_t chunk = 1;  // records: a power of two
  Divider chunks;      // of a line
  uint32_t lines = 0;
  uint32_t keep = 0;
  SortRecords to;
  uint32_t to_pitch = 0;
};

// One step of a merge to sorted runs of `size` records, all within lines of a power of two of records.
struct SortMergeArguments {
  SortRecords records;
  uint32_t pairs = 0;  // of all lines
  uint32_t size = 0;   // merged
  uint32_t step = 0;   // between records that are compared; 0: each with its mirror image
};

struct TopKArguments {
  SortRecords records;
  uint32_t pitch = 0;
  const std::byte* x = nullptr;
  std::byte* values = nullptr;  // null: not wanted
  int64_t* indices = nullptr;
  Divider k, inner;
  uint32_t length = 0, size = 0;  // size: elements of the result
  int32_t width = 4;
};

}  // namespace sinter::cuda
