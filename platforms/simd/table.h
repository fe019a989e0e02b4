// The parts of the simd kernels that do not depend on the instruction set.
#pragma once

#include <algorithm>
#include <cmath>

#include "platforms/simd/isa/config.h"
#include "runtime/backend/kernel.h"
#include "runtime/core/checked.h"
#include "runtime/core/op_enums.h"

namespace sinter::simd {

#define SINTER_SIMD_KERNEL(name) extern const Kernel k##name##Kernel;
#include "platforms/simd/kernels.def"
#undef SINTER_SIMD_KERNEL

inline Status check_float_dense(const TensorView& t) {
  SINTER_RETURN_UNLESS(t.dtype == DType::kFloat32, unsupported("the simd kernels compute in float32"));
  SINTER_RETURN_UNLESS(t.dense(), unsupported("the simd kernel takes dense operands"));
  return ok_status();
}
// Checks that all present operands are dense float32.
inline Status accept_float_dense(const OpCall& call) {
  for (const TensorView& t : call.inputs)
    if (t.present()) SINTER_RETURN_IF_ERROR(check_float_dense(t));
  for (const TensorView& t : call.outputs)
    if (t.present()) SINTER_RETURN_IF_ERROR(check_float_dense(t));
  return ok_status();
}

// The elements of a row from which on working row by row costs less than a copy.
inline constexpr int64_t kStridedRow = 16;

// Checks that present operands are float32; operand 0 and output 0 may be evenly spaced, others are dense.
inline Status accept_float_pixels(const OpCall& call) {
  const auto check = [](const TensorView& t, bool first) {
    int64_t step = 0;
    if (!t.present()) return ok_status();
    SINTER_RETURN_UNLESS(t.dtype == DType::kFloat32, unsupported("the simd kernels compute in float32"));
    SINTER_RETURN_UNLESS(t.dense() || (first && t.evenly_spaced(&step)),
                         unsupported("the simd kernel takes dense or evenly spaced operands"));
    return ok_status();
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) SINTER_RETURN_IF_ERROR(check(call.in(i), i == 0));
  for (size_t i = 0; i < call.outputs.size(); ++i) SINTER_RETURN_IF_ERROR(check(call.out(i), i == 0));
  return ok_status();
}

// Checks that a kernel that moves elements gets those of whole bytes.
inline Status accept_whole_bytes(const OpCall& call) {
  SINTER_RETURN_UNLESS(byte_width(call.in(0).dtype) != 0, unsupported("packed elements are not moved"));
  return ok_status();
}

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Returns the length of nearly equal pieces of `length`, at most `most`; 1 if there are none.
inline int64_t even_piece(int64_t length, int64_t most) {
  return length > 0 ? divide_up(length, divide_up(length, most)) : 1;
}

}  // namespace sinter::simd
