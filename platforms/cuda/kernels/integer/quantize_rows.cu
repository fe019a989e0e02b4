// QuantizeRows: a warp for each row.
#include "platforms/cuda/kernels/integer/quantize_rows.h"
#include "platforms/cuda/kernels/integer/rounded_block.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void quantize_rows(const QuantizeRowsArguments& a) {
  const int64_t warps = global_threads() / kWarp;
  for (int64_t row = global_thread() / kWarp; row < a.rows; row += warps) {
    int8_t* to = a.y == nullptr ? nullptr : a.y + row * a.size;
    const float scale =
        round_by_warp(reinterpret_cast<const T*>(a.x) + row * a.size, a.size, [&](uint32_t i, float q) {
          if (to != nullptr) to[i] = static_cast<int8_t>(q);
        });
    if (a.scales != nullptr && lane() == 0) a.scales[row] = scale;
  }
}

}  // namespace

SINTER_KERNEL(quantize_rows, QuantizeRowsArguments) {
  switch (a.dtype) {
    case DType::kFloat16:
      return quantize_rows<Float16>(a);
    case DType::kBFloat16:
      return quantize_rows<BFloat16>(a);
    case DType::kFloat64:
      return quantize_rows<double>(a);
    default:
      return quantize_rows<float>(a);
  }
}

}  // namespace sinter::cuda
