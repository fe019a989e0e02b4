// Which input elements an output element of Resize reads along one axis, and with which weights.
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

// All axes of a call, without tables. Needs attributes that infer has checked.
void resize_axes(const ResizeAttrs& a, const TensorView& x, ResizeAxis* axes);
// Takes the tables' memory (while measuring: counts it) ...
void take_resize_tables(BumpArena& arena, ResizeAxis* axis);
// ... and fills them.
void fill_resize_tables(const ResizeAttrs& a, ResizeAxis* axis);

// A linear, not antialiased axis whose tables are filled, as QResize takes it: [out][2]. False if elements
// read the extrapolation value.
bool fixed_resize_taps(const ResizeAxis& axis, int32_t* taps);

}  // namespace sinter
