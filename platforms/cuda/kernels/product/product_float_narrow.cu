// Products of float32 matrices with weights in a narrower type, in tiles.
#include "platforms/cuda/kernels/product/product_float.h"

namespace sinter::cuda {

using product_float::multiply_tile;

SINTER_KERNEL(product_float_narrow_128x128, ProductArguments) { multiply_tile<true, 128, 128, 8, 8>(a); }
SINTER_KERNEL(product_float_narrow_64x64, ProductArguments) { multiply_tile<true, 64, 64, 4, 4>(a); }
SINTER_KERNEL(product_float_narrow_128x32, ProductArguments) { multiply_tile<true, 128, 32, 4, 4>(a); }
SINTER_KERNEL(product_float_narrow_256x16, ProductArguments) { multiply_tile<true, 256, 16, 4, 4>(a); }

}  // namespace sinter::cuda
