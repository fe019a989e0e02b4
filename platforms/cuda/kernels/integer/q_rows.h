// Arguments of kernels/integer/q_rows.cu: those of products, of up to four rows of a matrix.
#pragma once

#include "platforms/cuda/kernels/integer/q_product.h"

namespace sinter::cuda {

inline constexpr int kQRowsColumns = 4;  // of a warp

}  // namespace sinter::cuda
