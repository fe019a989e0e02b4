#include "tests/op_harness/operand.h"

#include <cstring>

namespace sinter::test {

TensorView laid_out(DType dtype, const Shape& dims, Layout layout, int64_t* first, int64_t* span) {
  TensorView view;
  view.dtype = dtype;
  view.set_shape(dims);
  const auto width = static_cast<int64_t>(byte_width(dtype));
  int64_t bytes = view.dense_bytes(), offset = 0;
  if (!is_dense(layout) && width != 0) {
    const bool pixels = layout == Layout::kPixels;
    int64_t step = pixels ? width : width * 2;  // a gap after every element and every row
    for (int i = view.rank - 1; i >= 0; --i) {
      view.strides[i] = step;
      step = (view.dims[i] == 0 ? 1 : view.dims[i]) * step;
      if (!pixels || i == view.rank - 1) step += pixels ? 3 * width : width;
    }
    bytes = step;
    if (layout == Layout::kReversed)
      for (int i = 0; i < view.rank; ++i) {
        if (view.dims[i] > 1) offset += (view.dims[i] - 1) * view.strides[i];
        view.strides[i] = -view.strides[i];
      }
  }
  if (first != nullptr) *first = offset;
  if (span != nullptr) *span = bytes;
  return view;
}

Operand::Operand(DType dtype, const Shape& dims, Layout layout)
    : dense_(is_dense(layout) || byte_width(dtype) == 0), alone_(dense_ && layout != Layout::kShifted) {
  int64_t first = 0, span = 0;
  view_ = laid_out(dtype, dims, layout, &first, &span);
  if (layout == Layout::kShifted) {
    first = static_cast<int64_t>(byte_width(dtype));
    span += first;
  }
  const bool front = layout == Layout::kFront || layout == Layout::kGaps || layout == Layout::kPixels;
  memory_ = Guarded(static_cast<size_t>(span), front ? Flush::kStart : Flush::kEnd,
                    layout == Layout::kTight ? 0 : kReadPadding);
  view_.data = memory_.data() + first;
}

void Operand::write(const Tensor& t) {
  if (t.dtype == DType::kNone) return;
  each([&](std::byte* p, size_t bytes, size_t at) { std::memcpy(p, t.bytes.data() + at, bytes); });
}

Tensor Operand::read() const {
  Tensor t{view_.dtype, Shape(view_.shape().begin(), view_.shape().end()), {}};
  t.bytes.resize(static_cast<size_t>(view_.dense_bytes()));
  each([&](std::byte* p, size_t bytes, size_t at) { std::memcpy(t.bytes.data() + at, p, bytes); });
  return t;
}

bool Operand::clean() const {
  if (alone_) return memory_.clean();
  const std::span<std::byte> window = memory_.window();
  std::vector<std::byte> others(window.begin(), window.end());
  each([&](const std::byte* p, size_t bytes, size_t) {
    std::memset(others.data() + (p - window.data()), static_cast<int>(Guarded::kPoison), bytes);
  });
  return Guarded::is_poison(others);
}

}  // namespace sinter::test
