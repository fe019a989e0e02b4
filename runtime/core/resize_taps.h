// The input elements that an output element of Resize reads along one axis, and their weights.
//
// An output position maps to a coordinate in the input; `taps` elements surround it (those beyond the edge
// repeat the edge's element). The arithmetic is in double, in ONNX's order of operations, because a
// coordinate next to an integer or a half decides which element is read.
#pragma once

#include "runtime/core/bump_arena.h"
#include "runtime/core/op.h"
#include "runtime/core/op_enums.h"
#include "runtime/core/tensor_view.h"

namespace sinter {

struct ResizeAxis {
  int64_t in = 0, out = 0, taps = 1;
  double scale = 1, roi_begin = 0, roi_end = 1;
  bool identity = true;        // output element i is input element i; no tables
  int64_t* index = nullptr;    // [out][taps], within the input
  double* weight = nullptr;    // [out][taps]
  uint8_t* outside = nullptr;  // [out]: the result is the extrapolation value
};

// Describes all axes of a call, without tables. The attributes are those that infer has checked.
void resize_axes(const ResizeAttrs& a, const TensorView& x, ResizeAxis* axes);
// Takes the tables' memory, or counts it while measuring.
void take_resize_tables(BumpArena& arena, ResizeAxis* axis);
// Fills the tables.
void fill_resize_tables(const ResizeAttrs& a, ResizeAxis* axis);

// Writes the tables of a linear, not antialiased axis as QResize takes them: [out][2]. Returns false if
// elements read the extrapolation value.
bool fixed_resize_taps(const ResizeAxis& axis, int32_t* taps);

}  // namespace sinter
