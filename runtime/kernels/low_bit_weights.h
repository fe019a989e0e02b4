// Parts of the reference kernels of products with weights of few bits: a check of their operands, and a
// reader that gives weights of any format as doubles, a piece at a time.
#pragma once

#include <algorithm>

#include "runtime/backend/low_bit_matrix.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/reference.h"

namespace sinter {

// The number of weights of four columns that are widened at a time, and of the rows that use them.
inline constexpr int64_t kPiece = 128, kRows = 64;

// Returns an error unless the call has weights [..., elements of a row] of a format, scales [..., blocks] of
// x's type or of a narrower float, zero points of the same shape (none, the weights' type or, for unsigned
// weights, x's), and a table where the codes are indices. The rank of weights and x is checked already.
inline Status check_low_bit_operands(const OpCall& call, int64_t bits, int64_t block_size) {
  const LowBitPlaces at = low_bit_places(call.op);
  const TensorView &w = call.in(at.weights), &scales = call.in(at.scales);
  const DType x = call.in(0).dtype, s = scales.dtype;
  const int64_t depth = call.in(0).dims[call.in(0).rank - 1];
  const WeightFormat* format = find_weight_format(w.dtype, bits, call.has_input(at.table));
  SINTER_RETURN_UNLESS(format != nullptr,
                       invalid("weights of %A with bits %b, or beside a table, have no format",
                               static_cast<int64_t>(w.dtype), bits)
                           .of_input(at.weights));
  SINTER_RETURN_UNLESS(
      w.dims[w.rank - 1] == format->row_elements(depth),
      invalid("rows of %a elements do not hold the weights of %b values", w.dims[w.rank - 1], depth));
  SINTER_RETURN_IF_ERROR(check_dtype(
      call, at.scales, s == x || (is_float(s) && s != DType::kFloat4E2M1 && bit_width(s) < bit_width(x))));
  SINTER_RETURN_UNLESS(block_size >= 1, invalid("block size %a is out of range", block_size));
  const int64_t blocks = depth / block_size + (depth % block_size != 0 ? 1 : 0);
  bool fits = scales.rank == w.rank && scales.dims[w.rank - 1] == blocks;
  for (int i = 0; fits && i + 1 < w.rank; ++i) fits = scales.dims[i] == w.dims[i];
  SINTER_RETURN_UNLESS(
      fits, invalid("the scales are not %a for each row of the weights", blocks).of_input(at.scales));
  if (call.has_input(at.zeros)) {
    const TensorView& zeros = call.in(at.zeros);
    SINTER_RETURN_IF_ERROR(check_dtype(
        call, at.zeros,
        format->is_integer() && (zeros.dtype == w.dtype || (!format->is_signed() && zeros.dtype == x))));
    SINTER_RETURN_UNLESS(zeros.same_shape(scales),
                         invalid("zero points and scales differ in shape").of_input(at.zeros));
  }
  if (!format->has_table()) return ok_status();
  const TensorView& table = call.in(at.table);
  SINTER_RETURN_IF_ERROR(check_dtype(
      call, at.table,
      table.dtype == DType::kFloat32 || (table.dtype == DType::kFloat64 && x == DType::kFloat64)));
  SINTER_RETURN_UNLESS(table.rank == 1 && table.dims[0] == kWeightTableSize,
                       invalid("a table has %a values in one axis", kWeightTableSize).of_input(at.table));
  return ok_status();
}

// Returns element i of a run of elements of type t.
inline double number(const Run& run, DType t, int64_t i) {
  switch (wide_kind(t)) {
    case Wide::kFloat:
      return run.f[i];
    case Wide::kSigned:
      return static_cast<double>(run.i[i]);
    default:
      return static_cast<double>(run.u[i]);
  }
}
// Returns element `at` of dense elements.
inline double element(DType t, const std::byte* from, int64_t at) {
  Run run;
  read_run(t, from + at * static_cast<int64_t>(byte_width(t)), 0, at, 1, run);
  return number(run, t, 0);
}

// A reader of weights less their zero points, or values of the table, and of scales, in double. Weights
// without scales are floats of any type.
class LowBitReader {
 public:
  explicit LowBitReader(const OpCall& call)
      : m_(low_bit_matrix(call)), w_(call.in(low_bit_places(call.op).weights)) {
    if (m_.scales == nullptr) m_.block = std::max<int64_t>(m_.depth, 1);
  }

  int64_t blocks() const { return m_.blocks; }
  // `row` counts the weights' rows of all matrices.
  double scale(int64_t row, int64_t block) const {
    return element(m_.scale_type, m_.scales, row * m_.blocks + block);
  }

  // Reads weights k0 .. k1 - 1 of one row, linear::kTile apart, times their scales if `scaled`.
  void read(int64_t row, int64_t k0, int64_t k1, bool scaled, double* dst) const {
    Run run;
    for (int64_t k = k0; k < k1;) {
      const int64_t block = k / m_.block, n = std::min({m_.block - k % m_.block, k1 - k, kRunLength});
      const double zero = m_.zeros != nullptr ? element(m_.zero_type, m_.zeros, row * m_.blocks + block) : 0,
                   by = scaled && m_.scales != nullptr ? scale(row, block) : 1;
      if (m_.format.in_planes()) {
        for (int64_t i = 0; i < n; ++i) run.u[i] = weight_code(m_.format, m_.weights, m_.depth, row, k + i);
      } else {
        const int64_t first = row * m_.depth + k;
        const auto width = static_cast<int64_t>(byte_width(w_.dtype));
        read_run(w_.dtype, w_.data + first * width, width, first, n, run);
      }
      for (int64_t i = 0; i < n; ++i, dst += linear::kTile) {
        const double code = number(run, w_.dtype, i);
        *dst = (m_.table != nullptr ? element(m_.table_type, m_.table, static_cast<int64_t>(code))
                                    : code - zero) *
               by;
      }
      k += n;
    }
  }
  // Reads the same of rows first .. first + kTile - 1, with zeros for the rows from `end` on.
  void read_panel(int64_t first, int64_t end, int64_t k0, int64_t k1, bool scaled, double* piece) const {
    for (int64_t row = first; row < first + linear::kTile; ++row) {
      if (row < end)
        read(row, k0, k1, scaled, piece + (row - first));
      else
        for (int64_t k = 0; k < k1 - k0; ++k) piece[k * linear::kTile + (row - first)] = 0;
    }
  }

 private:
  LowBitMatrix m_;
  TensorView w_;
};

}  // namespace sinter
