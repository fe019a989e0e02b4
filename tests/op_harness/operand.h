// Memory for one operand of a step, in the layouts that steps may meet.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/core/tensor_view.h"
#include "tests/memory/guarded.h"
#include "tests/op_harness/tensor.h"

namespace sinter::test {

// An operand's layout in memory. Dense ones end before a guard page (after the padding that kernels may
// read), or, kFront, begin behind one; kTight has no padding.
// kPixels: rows along the last axis alternate with others'.
enum class Layout { kDense, kFront, kTight, kGaps, kReversed, kPixels };
constexpr bool is_dense(Layout l) { return l <= Layout::kTight; }

// The dims and strides of an operand in this layout, without data. `first`: bytes from the lowest address to
// the first element; `span`: bytes from the lowest address to the end. Both may be null.
TensorView laid_out(DType dtype, const Shape& dims, Layout layout, int64_t* first = nullptr,
                    int64_t* span = nullptr);

// The view, and bytes around it that must not change.
class Operand {
 public:
  Operand(DType dtype, const Shape& dims, Layout layout);
  const TensorView& view() const { return view_; }
  // Its memory with all that is around it.
  std::span<std::byte> window() const { return memory_.window(); }

  void write(const Tensor& t);
  Tensor read() const;
  // Whether all bytes that belong to no element still hold the poison.
  bool clean() const;

 private:
  // Calls f(address, bytes, place among the dense bytes) for every run of adjacent bytes.
  template <class F>
  void each(F f) const;

  TensorView view_;
  Guarded memory_;
  bool dense_ = true;
};

}  // namespace sinter::test
