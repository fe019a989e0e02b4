// The calls that oneDNN takes, as convolutions and products of matrices. Plain data: the library is not
// needed.
#pragma once

#include "runtime/backend/window.h"

namespace sinter::onednn {

// A convolution of two spatial axes, of which missing ones have length 1, or a product rows x [k, n].
struct Problem {
  bool convolution = false, depthwise = false;
  WindowGeometry window;           // of convolutions; the first axis has length 1
  int64_t rows = 0, k = 0, n = 0;  // of products
  int64_t k_step = 0, n_step = 0;  // elements of the weights from one k, one n to the next
  float low = 0, high = 0;         // of the clamp
  bool clamped = false, bias = false;
};

// Whether operators.def has a row for the operation.
bool is_known(Op op);

// kUnsupported: a call that is left to others, and why.
Status problem_of(const OpCall& call, Problem* p);

}  // namespace sinter::onednn
