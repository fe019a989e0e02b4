// Products of few rows with matrices of the same type.
#include "platforms/cuda/kernels/product/product_rows.h"

namespace sinter::cuda {

using product_rows::multiply_few;

// Blocks are [product, group of columns]; column_tiles are those groups.
SINTER_KERNEL(product_rows_float, ProductArguments) { multiply_few<float, float>(a); }
SINTER_KERNEL(product_rows_float16, ProductArguments) { multiply_few<Float16, Float16>(a); }
SINTER_KERNEL(product_rows_bfloat16, ProductArguments) { multiply_few<BFloat16, BFloat16>(a); }

}  // namespace sinter::cuda
