// Which calls XNNPACK takes, as plain data: no library is needed, so the converter asks the same question
// when it plans for another machine.
#pragma once

#include "runtime/backend/kernel.h"

namespace sinter::xnnpack {

// A window operation (convolution, pooling) in two dimensions; one-dimensional ones have height 1.
struct Window {
  size_t batch = 0, in_h = 1, in_w = 1, in_c = 0, out_h = 1, out_w = 1, out_c = 0;
  size_t in_step = 0, out_step = 0;  // elements from one pixel to the next
  uint32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  uint32_t top = 0, left = 0, bottom = 0, right = 0;  // pooling: enlarged for ceil_mode
  uint32_t adjust_h = 0, adjust_w = 0, group = 1;

  bool padded() const { return (top | left | bottom | right) != 0; }
  size_t kernel_size() const { return size_t{kernel_h} * kernel_w; }
};
Status window_of(const OpCall& call, Window* w);

// A product with a constant or a computed second operand.
struct Product {
  size_t rows = 0, k = 0, n = 0;     // constant: [rows, k] x [k, n]
  size_t in_step = 0, out_step = 0;  // elements from one row to the next
  bool constant = false, transposed = false;
  int batch_rank = 0;
  size_t batch_a[kMaxRank] = {}, batch_b[kMaxRank] = {};
};
Status product_of(const OpCall& call, Product* p);

// A call of accept() on float16 values; what computes in it needs a processor that does.
bool is_half(const OpCall& call);

// An integer product with a weight of -128: the kernels for ARM, which add two products in int16, do not take
// it.
bool has_wide_weights(const OpCall& call);

// ok, or why not. *workspace: bytes that a run needs at most on any instruction set with this many threads.
Status accept(const OpCall& call, int threads, size_t* workspace);

}  // namespace sinter::xnnpack
