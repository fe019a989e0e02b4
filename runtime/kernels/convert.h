// Elements of any dtype, packed ones included, as runs of one of three wide types, and back.
//
// Every number of every dtype is exact in its wide type: floats in double, signed integers in int64, unsigned
// ones and bool in uint64. Cast and the quantizing kernels are made of these two functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/tensor_view.h"

namespace sinter {

enum class Wide { kFloat, kSigned, kUnsigned };
Wide wide_kind(DType t);

inline constexpr int64_t kRunLength = 128;
union Run {
  double f[kRunLength];
  int64_t i[kRunLength];
  uint64_t u[kRunLength];
};

// Returns the view with strides of 0 if its type is packed: such values are dense, and elements are found by
// their position in row-major order.
inline TensorView by_position(TensorView v) {
  if (is_sub_byte(v.dtype))
    for (int64_t& stride : v.strides) stride = 0;
  return v;
}

// Reads n <= kRunLength elements from `data`, `stride` bytes apart, or of packed types from element
// `position` of dense data (`stride` is ignored).
void read_run(DType t, const std::byte* data, int64_t stride, int64_t position, int64_t n, Run& run);

// Converts a run of kind `from` to dtype t. Floats round once, half to even. A float becomes an integer
// towards zero, saturated, with NaN as 0 (types of 4 and 2 bits keep the low bits of the int32, as ONNX
// does). Narrower integers keep the low bits. A bool is whether the number is not zero. `saturate` is for
// float8. The bits of packed elements must be zero before.
void write_run(DType t, Wide from, const Run& run, bool saturate, std::byte* data, int64_t stride,
               int64_t position, int64_t n);

}  // namespace sinter
