// Arguments of kernels/integer/quantize_rows.cu.
#pragma once

#include "runtime/core/dtype.h"

namespace sinter::cuda {

// x is [rows, size], dense.
struct QuantizeRowsArguments {
  const std::byte* x = nullptr;
  int8_t* y = nullptr;      // or null
  float* scales = nullptr;  // or null
  int64_t rows = 0;
  uint32_t size = 0;
  DType dtype = DType::kFloat32;
};

}  // namespace sinter::cuda
