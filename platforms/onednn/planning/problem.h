// The calls that oneDNN takes, as convolutions and products of matrices. They are plain data, which does not
// need the library.
#pragma once

#include "runtime/backend/window.h"

namespace sinter::onednn {

// A convolution of two spatial axes, of which missing ones have length 1, or a product rows x [k, n].
// Products of integers are convolutions of 1x1 along a line of `rows` pixels.
struct Problem {
  bool convolution = false, depthwise = false;
  WindowGeometry window;           // of convolutions; the first axis has length 1
  int64_t rows = 0, k = 0, n = 0;  // of products
  int64_t k_step = 0, n_step = 0;  // elements of the weights from one k, one n to the next
  float low = 0, high = 0;         // of the clamp; for integers before y_zero is added
  bool clamped = false, bias = false;
  bool bfloat16 = false;  // all operands are bfloat16; sums are float32

  // For operands of int8, the result is float(sum of (x - x_zero) * w + bias) * multipliers[o], which with
  // `rounded` is rounded and clamped, and has y_zero added (docs/numerics.md).
  bool integer = false, rounded = false;
  int32_t x_zero = 0, y_zero = 0;
  bool one_multiplier = false;  // for all channels
};

// Returns whether operators.def has a row for the operation.
bool is_known(Op op);
// Returns whether the operation is QConv or similar.
bool is_of_integers(Op op);

// Fails with kUnsupported and the reason for a call that is left to others, by types, dims and attributes.
Status problem_of(const OpCall& call, Problem* p);

// Checks the data of small constants: float32 must hold the library's sums in it exactly.
Status check_constants(const OpCall& call, const Problem& p);

}  // namespace sinter::onednn
