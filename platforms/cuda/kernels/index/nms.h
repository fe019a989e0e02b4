// Arguments of kernels/index/nms.cu.
#pragma once

#include "platforms/cuda/kernels/index/sort.h"

namespace sinter::cuda {

// Each line is a class of a batch, whose records are in the order of falling scores.
struct NmsArguments {
  const std::byte* boxes = nullptr;  // [batches, length, 4]
  SortRecords records;
  uint32_t pitch = 0, length = 0, lines = 0;
  Divider classes;
  uint32_t limit = 0;  // boxes that are kept of a class
  Divider limit_divider;
  int32_t is_double = 0;                 // float64, else float32
  int32_t center = 0;                    // a box is its center and size
  const std::byte* threshold = nullptr;  // null: 0
  int32_t threshold_double = 0;
  uint8_t* dropped = nullptr;   // [lines, length]
  uint32_t* kept = nullptr;     // [lines, limit]
  uint32_t* counts = nullptr;   // boxes of each line; in nms_write, of those before it
  int64_t* selected = nullptr;  // [.., 3]
};

}  // namespace sinter::cuda
