// Weights of a product that are narrower floats than the other operand.
#pragma once

#include "platforms/cuda/grid/float8.h"
#include "runtime/core/dtype.h"

namespace sinter::cuda {

// Calls f with an element of the type: float32, float16, bfloat16, or a float of 8 bits but float8e8m0.
template <class F>
SINTER_DEVICE auto for_narrow_float(DType type, F f) {
  switch (type) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat16:
      return f(Float16{});
    case DType::kBFloat16:
      return f(BFloat16{});
    case DType::kFloat8E4M3FN:
      return f(Float8E4M3FN{});
    case DType::kFloat8E4M3FNUZ:
      return f(Float8E4M3FNUZ{});
    case DType::kFloat8E5M2:
      return f(Float8E5M2{});
    default:
      return f(Float8E5M2FNUZ{});
  }
}

// Returns element i.
SINTER_DEVICE float narrow_weight(const std::byte* from, DType type, int64_t i) {
  return for_narrow_float(type, [&](auto zero) {
    using W = decltype(zero);
    return widen(reinterpret_cast<const W*>(from)[i]);
  });
}

}  // namespace sinter::cuda
