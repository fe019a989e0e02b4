// Integer products of up to four rows, which take as long as the weights take to arrive: a warp reads four
// rows of weights, 16 bytes a lane at a time, the next ones before it uses these. x is a matrix of int8 whose
// rows begin at multiples of 16 elements.
#include "platforms/cuda/kernels/integer/q_rows.h"
#include "platforms/cuda/kernels/integer/requantize.h"

namespace sinter::cuda {
namespace {

SINTER_DEVICE int32_t dot16(const Words<16>& a, const Words<16>& b, int32_t sum) {
  SINTER_UNROLL
  for (int i = 0; i < 4; ++i) sum = dot4(static_cast<int32_t>(a.w[i]), static_cast<int32_t>(b.w[i]), sum);
  return sum;
}

template <int kRows>
SINTER_DEVICE void few_rows(const QProductArguments& a) {
  constexpr uint32_t kOne = 0x01010101;
  const Words<16> ones = {{kOne, kOne, kOne, kOne}};
  const uint32_t number = block_z();
  const std::byte* x = a.x + offset_of(a.products, a.x_steps, number);
  const std::byte* w = a.w + offset_of(a.products, a.w_steps, number);
  const bool x_aligned = is_aligned(x, 16), w_aligned = is_aligned(w, 16);
  const uint32_t column0 =
      (block_x() * static_cast<uint32_t>(block_threads() / kWarp) + static_cast<uint32_t>(warp_index())) *
      kQRowsColumns;
  const bool sum_rows = a.w_zeros != nullptr || a.w_zero != 0, sum_columns = a.folded == 0 && a.x_zero != 0;
  int32_t sums[kRows][kQRowsColumns] = {}, rows[kRows] = {}, columns[kQRowsColumns] = {};
  const auto load = [&](uint32_t k, Words<16>(&to)[kQRowsColumns]) {
    SINTER_UNROLL
    for (int n = 0; n < kQRowsColumns; ++n) {
      to[n] = {};
      const uint32_t column = column0 + static_cast<uint32_t>(n);
      if (column < a.columns && k < a.x_depth)
        to[n] = load_words<16>(w + int64_t{column} * a.pitch + k, w_aligned);
    }
  };
  Words<16> v[kQRowsColumns], next[kQRowsColumns];
  load(static_cast<uint32_t>(lane()) * 16, v);
  for (uint32_t k = static_cast<uint32_t>(lane()) * 16; k < a.x_depth; k += kWarp * 16) {
    load(k + kWarp * 16, next);
    if (sum_columns) SINTER_UNROLL
    for (int n = 0; n < kQRowsColumns; ++n) columns[n] = dot16(v[n], ones, columns[n]);
    SINTER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (static_cast<uint32_t>(r) >= a.rows) break;
      const auto u = load_words<16>(x + r * a.window.in_step + k, x_aligned);
      if (sum_rows) rows[r] = dot16(u, ones, rows[r]);
      SINTER_UNROLL
      for (int n = 0; n < kQRowsColumns; ++n) sums[r][n] = dot16(u, v[n], sums[r][n]);
    }
    SINTER_UNROLL
    for (int n = 0; n < kQRowsColumns; ++n) v[n] = next[n];
  }
  const auto product_column = static_cast<uint32_t>(offset_of(a.products, a.column_steps, number));
  std::byte* y = a.y + offset_of(a.products, a.y_steps, number);
  SINTER_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (static_cast<uint32_t>(r) >= a.rows) break;
    const int32_t row_sum = sum_rows ? fold_warp(rows[r], AddUp()) : 0;
    SINTER_UNROLL
    for (int n = 0; n < kQRowsColumns; ++n) {
      auto sum = static_cast<uint32_t>(fold_warp(sums[r][n], AddUp()));
      const auto column_sum = static_cast<uint32_t>(sum_columns ? fold_warp(columns[n], AddUp()) : 0);
      const uint32_t column = column0 + static_cast<uint32_t>(n), all = product_column + column;
      if (column >= a.columns || lane() != n) continue;
      const auto zero =
          static_cast<uint32_t>(a.w_zeros != nullptr ? a.w_zeros[int64_t{all} * a.w_zero_step] : a.w_zero);
      if (a.terms != nullptr) sum += static_cast<uint32_t>(static_cast<const int32_t*>(a.terms)[all]);
      if (sum_columns) sum += static_cast<uint32_t>(a.x_zero) * (a.depth * zero - column_sum);
      sum -= zero * static_cast<uint32_t>(row_sum);
      const float multiplier =
          a.multipliers != nullptr ? a.multipliers[int64_t{all} * a.multiplier_step] : a.multiplier;
      store_result(a.result, y, r * a.y_step + column,
                   static_cast<float>(static_cast<int32_t>(sum)) * multiplier);
    }
  }
}

}  // namespace

SINTER_KERNEL(q_row, QProductArguments) { few_rows<1>(a); }
SINTER_KERNEL(q_four_rows, QProductArguments) { few_rows<4>(a); }

}  // namespace sinter::cuda
