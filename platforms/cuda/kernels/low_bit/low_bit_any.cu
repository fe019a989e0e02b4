// LowBitFullyConnected for calls that the other kernels do not take: a warp computes one result, from weights
// as they are stored.
#include "platforms/cuda/kernels/low_bit/low_bit_numbers.h"

namespace sinter::cuda {
namespace {

// Returns weight k of a column.
SINTER_DEVICE float any_weight(const LowBitArguments& a, int64_t column, uint32_t k) {
  if (is_float8(a.format.type)) return narrow_weight(a.w, a.format.type, column * a.depth + k);
  const unsigned code = weight_code(a.format, reinterpret_cast<const uint8_t*>(a.w), a.depth, column, k);
  if (a.format.has_table()) return a.table[code];
  if (a.format.is_integer()) return static_cast<float>(code_integer(a.format, code));
  return static_cast<float>(code_number(a.format, code));
}

template <class T>
SINTER_DEVICE void any_result(const LowBitArguments& a, uint32_t row, uint32_t column) {
  const T* x = reinterpret_cast<const T*>(a.x) + int64_t{row} * a.depth;
  using R = decltype(widen(T{}));
  R sum = 0;
  const int64_t first_of_expert = first_column_of_expert(a, row), of_all = first_of_expert + column;
  for (uint32_t k = static_cast<uint32_t>(lane()); k < a.depth; k += kWarp) {
    const uint32_t block = a.block_size.divide(k);
    const int64_t at = of_all * a.blocks + block;
    R zero = 0, scale;
    if (a.zeros != nullptr)
      zero = a.float_zeros != 0
                 ? widen(reinterpret_cast<const T*>(a.zeros)[at])
                 : static_cast<R>(low_bit_integer(a.zeros, a.zero_bits, a.format.is_signed(), at));
    if constexpr (sizeof(T) == 8)
      scale = a.scale_type == DType::kFloat64 ? reinterpret_cast<const double*>(a.scales)[at]
                                              : static_cast<double>(load_scale(a, at));
    else
      scale = load_scale(a, at);
    if (a.row_scales != nullptr) scale *= static_cast<R>(a.row_scales[int64_t{row} * a.blocks + block]);
    const R weight = (static_cast<R>(any_weight(a, of_all, k)) - zero) * scale;
    sum = m_fma(widen(x[k]), weight, sum);
  }
  sum = fold_warp(sum, AddUp());
  if (lane() != 0) return;
  if constexpr (sizeof(T) == 8) {
    if (a.bias != nullptr) sum += reinterpret_cast<const double*>(a.bias)[of_all];
    reinterpret_cast<double*>(a.y)[int64_t{row} * a.columns + column] = sum < a.low    ? a.low
                                                                        : sum > a.high ? a.high
                                                                                       : sum;
  } else {
    store_low_bit(a, row, column, sum, first_of_expert);
  }
}

}  // namespace

SINTER_KERNEL(low_bit_any, LowBitArguments) {
  const int64_t results = int64_t{a.rows} * a.columns, warps = global_threads() / kWarp;
  for (int64_t at = global_thread() / kWarp; at < results; at += warps) {
    const auto row = static_cast<uint32_t>(at / a.columns), column = static_cast<uint32_t>(at % a.columns);
    switch (a.kind) {
      case FloatKind::kHalf:
        any_result<Float16>(a, row, column);
        break;
      case FloatKind::kBHalf:
        any_result<BFloat16>(a, row, column);
        break;
      case FloatKind::kDouble:
        any_result<double>(a, row, column);
        break;
      default:
        any_result<float>(a, row, column);
    }
  }
}

}  // namespace sinter::cuda
