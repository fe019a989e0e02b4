// Products of few rows of float32 with weights in a narrower type.
#include "platforms/cuda/kernels/product/narrow_weight.h"
#include "platforms/cuda/kernels/product/product_rows.h"

namespace sinter::cuda {

using product_rows::multiply_few;

SINTER_KERNEL(product_rows_float_half, ProductArguments) {
  if (a.narrow == DType::kFloat16)
    multiply_few<float, Float16>(a);
  else
    multiply_few<float, BFloat16>(a);
}
SINTER_KERNEL(product_rows_float_float8, ProductArguments) {
  switch (a.narrow) {
    case DType::kFloat8E4M3FN:
      return multiply_few<float, Float8E4M3FN>(a);
    case DType::kFloat8E4M3FNUZ:
      return multiply_few<float, Float8E4M3FNUZ>(a);
    case DType::kFloat8E5M2:
      return multiply_few<float, Float8E5M2>(a);
    default:
      return multiply_few<float, Float8E5M2FNUZ>(a);
  }
}

}  // namespace sinter::cuda
