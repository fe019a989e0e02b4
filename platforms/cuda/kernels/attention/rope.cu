// Rope: a thread for each pair of elements that are rotated together, and for each one that passes.
#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/attention/rope.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void rotate(const RopeArguments& a) {
  using Angle = decltype(widen(T{}));
  for (int64_t n = global_thread(); n < a.threads; n += global_threads()) {
    uint32_t at;
    const uint32_t row = a.columns.divide(static_cast<uint32_t>(n), &at);
    const auto column = static_cast<int32_t>(at);
    const T* x = reinterpret_cast<const T*>(a.x) + int64_t{row} * a.size;
    T* y = reinterpret_cast<T*>(a.y) + int64_t{row} * a.size;
    if (column >= a.pairs) {
      y[column + a.pairs] = x[column + a.pairs];
      continue;
    }
    const Angle c =
        *reinterpret_cast<const Angle*>(a.cos + offset_of(a.rows, a.cos_steps, row) + column * a.cos_step);
    const Angle s =
        *reinterpret_cast<const Angle*>(a.sin + offset_of(a.rows, a.sin_steps, row) + column * a.sin_step);
    const int32_t first = a.interleaved != 0 ? 2 * column : column;
    const int32_t second = a.interleaved != 0 ? first + 1 : column + a.pairs;
    const auto p = widen(x[first]), q = widen(x[second]);
    narrow(m_fma(c, p, -(s * q)), y + first);
    narrow(m_fma(s, p, c * q), y + second);
  }
}

}  // namespace

SINTER_KERNEL(rope, RopeArguments) {
  switch (a.dtype) {
    case DType::kFloat64:
      return rotate<double>(a);
    case DType::kFloat16:
      return rotate<Float16>(a);
    case DType::kBFloat16:
      return rotate<BFloat16>(a);
    default:
      return rotate<float>(a);
  }
}

}  // namespace sinter::cuda
