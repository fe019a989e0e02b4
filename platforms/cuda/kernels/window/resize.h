// Arguments of kernels/window/resize.cu.
#pragma once

#include "platforms/cuda/grid/box.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// An axis that changes. Its tables, if there are any, hold for each element of the result the `taps` elements
// of the operand that it reads and their weights (float, or double for the types that are computed in it),
// and whether it reads none of them.
struct ResizeTables {
  const int32_t* index = nullptr;
  const void* weight = nullptr;
  const uint8_t* outside = nullptr;
  int32_t taps = 1;
  int64_t step = 0;  // of the operand, in elements
};

// `to` has the elements of a dense box, whose axes are those that stay and those that change.
inline constexpr int kResizedAxes = 3;
struct ResizeArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Box box;                            // of groups of `group` elements
  Steps steps;                        // of the operand, in elements, along the axes that stay
  int32_t resized[kBoxRank] = {};     // for each axis of the box: its number in `tables`; -1: it stays
  ResizeTables tables[kResizedAxes];  // the last one is the last axis that changes
  int32_t group = 1;                  // 1 or kResizeGroup: neighbours that one thread computes
  DType type = DType::kFloat32;
  double fill = 0;  // of elements that read none
};
inline constexpr int kResizeGroup = 4;

// Takes the nearest element along each axis; elements have `width` bytes.
struct ResizeNearestArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Box box;
  Steps steps;                            // of the operand, in bytes
  const int32_t* index[kBoxRank] = {};    // for each element along the axis; null: it stays
  const uint8_t* outside[kBoxRank] = {};  // null: none is
  int32_t width = 4;
  alignas(16) unsigned char fill[16] = {};
};

// Operands are [images, rows, columns, channels] of int8 or int16; tables are as in schemas/ops.def.
struct QResizeArguments {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const int32_t* rows = nullptr;
  const int32_t* columns = nullptr;
  Divider out_rows, out_columns, pieces;  // pieces of a pixel, of `group` channels each
  int32_t in_rows = 0, in_columns = 0, channels = 0;
  uint32_t size = 0;  // pieces of all pixels
  int32_t group = 1;  // 1 or kResizeGroup
  int32_t width = 1;
};

}  // namespace sinter::cuda
