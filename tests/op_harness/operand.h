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
// read), or, kFront, begin behind one; kTight has no padding; kShifted ones begin one element behind the
// alignment of buffers.
// kPixels: rows along the last axis alternate with others'.
enum class Layout { kDense, kFront, kTight, kShifted, kGaps, kReversed, kPixels };
constexpr bool is_dense(Layout l) { return l <= Layout::kShifted; }

// Returns the dims and strides of an operand in this layout, without data. `first`: bytes from the lowest
// address to the first element; `span`: bytes from the lowest address to the end. Both may be null.
TensorView laid_out(DType dtype, const Shape& dims, Layout layout, int64_t* first = nullptr,
                    int64_t* span = nullptr);

// The view, and bytes around it that must not change.
class Operand {
 public:
  Operand(DType dtype, const Shape& dims, Layout layout);
  const TensorView& view() const { return view_; }
  // Returns its memory with all bytes around it.
  std::span<std::byte> window() const { return memory_.window(); }

  void write(const Tensor& t);
  Tensor read() const;
  // Whether all bytes that belong to no element still hold the poison.
  bool clean() const;
  // Calls f(address, bytes, place among the dense bytes) for every run of adjacent bytes.
  template <class F>
  void each(F f) const;

 private:
  TensorView view_;
  Guarded memory_;
  bool dense_ = true;
  bool alone_ = true;  // its memory has only elements
};

template <class F>
void Operand::each(F f) const {
  const size_t width = byte_width(view_.dtype);
  if (dense_ || width == 0) {
    if (const auto bytes = static_cast<size_t>(view_.dense_bytes()); bytes > 0)
      f(view_.data, bytes, size_t{0});
    return;
  }
  int64_t index[kMaxRank] = {};
  const int64_t n = view_.size();
  for (int64_t i = 0; i < n; ++i) {
    std::byte* p = view_.data;
    for (int k = 0; k < view_.rank; ++k) p += index[k] * view_.strides[k];
    f(p, width, static_cast<size_t>(i) * width);
    for (int k = view_.rank - 1; k >= 0 && ++index[k] == view_.dims[k]; --k) index[k] = 0;
  }
}

}  // namespace sinter::test
