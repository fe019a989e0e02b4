// Products of bfloat16 matrices.
#include "platforms/cuda/kernels/product/product_half_tile.h"

namespace sinter::cuda {

SINTER_KERNEL(product_bfloat16_128x128, ProductArguments) {
  half_product::multiply_tile<BFloat16, 128, 128, 64, 32>(a);
}
SINTER_KERNEL(product_bfloat16_64x64, ProductArguments) {
  half_product::multiply_tile<BFloat16, 64, 64, 32, 32>(a);
}
SINTER_KERNEL(product_bfloat16_128x32, ProductArguments) {
  half_product::multiply_tile<BFloat16, 128, 32, 32, 32>(a);
}

}  // namespace sinter::cuda
