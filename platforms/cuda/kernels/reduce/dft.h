// Arguments of kernels/reduce/dft.cu. Operands are dense.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platforms/cuda/grid/divider.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

struct alignas(16) Complex {
  double re, im;
};

// The points of a line that a block transforms in shared memory.
inline constexpr int32_t kDftPoints = 4096;

// Transforms of length n of lines along an axis, by transforms of m, a power of two: n itself, or, if `chirp`
// is given, at least 2 n - 1.
struct DftArguments {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  const Complex* twiddles = nullptr;  // [m / 2]: exp(-2 pi i k / m)
  const Complex* chirp = nullptr;     // [n]: exp(-pi i k^2 / n)
  const Complex* filter = nullptr;    // [m]: the transform of its conjugate, divided by m
  // For m points that do not fit a block: [lines, m] each.
  Complex *points = nullptr, *other = nullptr;

  uint32_t first = 0, lines = 0;     // those of this launch
  uint32_t lines_each = 1;           // those of a block
  int32_t n = 0, m = 1, log_m = 0;   // m = 2^log_m
  int32_t bins = 0;                  // elements that are read along the axis
  int32_t in = 0, out = 0;           // elements along the axis, of x and of y
  int32_t parts = 1, out_parts = 2;  // real, or real and imaginary
  Divider inner;                     // elements between neighbours along the axis
  int32_t inverse = 0, real_output = 0;
  int32_t half = 0;  // for a stage: points between those that it combines
  DType dtype = DType::kNone;
};

}  // namespace sinter::cuda
