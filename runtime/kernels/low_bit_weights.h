// What the reference kernels of products with weights of few bits share: which operands they take, and
// reading numbers of any type as doubles, a piece of weights at a time.
#pragma once

#include <algorithm>

#include "runtime/core/bit_rows.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/product.h"
#include "runtime/kernels/reference.h"

namespace sinter {

// kPiece weights of four columns are widened at a time, for kRows rows.
inline constexpr int64_t kPiece = 128, kRows = 64;

// The operands of a call besides x, which is the first one.
struct LowBitPlaces {
  size_t weights, scales, zeros, table;
};

inline bool is_unsigned_weight(DType t) {
  return t == DType::kUint2 || t == DType::kUint4 || t == DType::kUint8;
}
inline bool is_low_bit_integer(DType t) {
  return is_unsigned_weight(t) || t == DType::kInt2 || t == DType::kInt4 || t == DType::kInt8;
}
inline bool is_low_bit_float(DType t) {
  return t == DType::kFloat4E2M1 || (is_float8(t) && t != DType::kFloat8E8M0);
}

// Whether the call has scales [..., blocks] of x's type or of a narrower float, zero points of the same shape
// (none, the weights' type or, for unsigned weights, x's), and a table (none, or 16 numbers that weights of
// uint4 index). The weights [..., depth] or [..., bytes of a row] and x are checked already.
inline Status check_low_bit_operands(const OpCall& call, const LowBitPlaces& at, int64_t depth,
                                     int64_t block_size) {
  constexpr int64_t kTableSize = 16;
  const TensorView &w = call.in(at.weights), &scales = call.in(at.scales);
  const DType x = call.in(0).dtype, s = scales.dtype;
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
    SINTER_RETURN_IF_ERROR(
        check_dtype(call, at.zeros,
                    is_low_bit_integer(w.dtype) &&
                        (zeros.dtype == w.dtype || (is_unsigned_weight(w.dtype) && zeros.dtype == x))));
    SINTER_RETURN_UNLESS(zeros.same_shape(scales),
                         invalid("zero points and scales differ in shape").of_input(at.zeros));
  }
  if (!call.has_input(at.table)) return ok_status();
  const TensorView& table = call.in(at.table);
  SINTER_RETURN_IF_ERROR(check_dtype(
      call, at.table,
      table.dtype == DType::kFloat32 || (table.dtype == DType::kFloat64 && x == DType::kFloat64)));
  SINTER_RETURN_UNLESS(table.rank == 1 && table.dims[0] == kTableSize,
                       invalid("a table has %a values in one axis", kTableSize).of_input(at.table));
  SINTER_RETURN_UNLESS(w.dtype == DType::kUint4,
                       invalid("indices into a table have the type uint4").of_input(at.weights));
  SINTER_RETURN_UNLESS(!call.has_input(at.zeros),
                       invalid("values of a table do not have zero points").of_input(at.zeros));
  return ok_status();
}

// Element i of a run of elements of type t.
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
// Element `at` of a dense value.
inline double element(const TensorView& v, int64_t at) {
  Run run;
  read_run(v.dtype, v.data + at * static_cast<int64_t>(byte_width(v.dtype)), 0, at, 1, run);
  return number(run, v.dtype, 0);
}

// Weights less their zero points, or values of the table, and scales, in double. Weights without scales are
// floats of any type.
class LowBitReader {
 public:
  // `bits`: LowBitFullyConnectedAttrs::bits.
  LowBitReader(const OpCall& call, const LowBitPlaces& at, int64_t block_size, int64_t bits)
      : w_(call.in(at.weights)),
        scales_(call.has_input(at.scales) ? call.in(at.scales) : TensorView{}),
        zeros_(call.has_input(at.zeros) ? call.in(at.zeros) : TensorView{}),
        table_(call.has_input(at.table) ? call.in(at.table) : TensorView{}),
        bits_(static_cast<int>(bits)),
        depth_(call.in(0).dims[call.in(0).rank - 1]),
        block_(scales_.present() ? block_size : std::max<int64_t>(depth_, 1)) {}

  int64_t blocks() const { return scales_.dims[scales_.rank - 1]; }
  // `row`: of the weights of all matrices.
  double scale(int64_t row, int64_t block) const { return element(scales_, row * blocks() + block); }

  // Weights k0 .. k1 - 1 of one row, linear::kTile apart, times their scales if `scaled`.
  void read(int64_t row, int64_t k0, int64_t k1, bool scaled, double* dst) const {
    Run run;
    for (int64_t k = k0; k < k1;) {
      const int64_t block = k / block_, n = std::min({block_ - k % block_, k1 - k, kRunLength});
      const double zero = zeros_.present() ? element(zeros_, row * blocks() + block) : 0,
                   by = scaled && scales_.present() ? scale(row, block) : 1;
      if (bits_ != 0) {
        const auto* codes = reinterpret_cast<const uint8_t*>(w_.data) + row * w_.dims[w_.rank - 1];
        for (int64_t i = 0; i < n; ++i) run.u[i] = bit_row_item(codes, bits_, depth_, k + i);
      } else {
        const int64_t first = row * depth_ + k;
        const auto width = static_cast<int64_t>(byte_width(w_.dtype));
        read_run(w_.dtype, w_.data + first * width, width, first, n, run);
      }
      for (int64_t i = 0; i < n; ++i, dst += linear::kTile) {
        const double code = number(run, w_.dtype, i);
        *dst = (table_.present() ? element(table_, static_cast<int64_t>(code)) : code - zero) * by;
      }
      k += n;
    }
  }
  // The same of rows first .. first + kTile - 1, of which those from `end` on are zeros.
  void read_panel(int64_t first, int64_t end, int64_t k0, int64_t k1, bool scaled, double* piece) const {
    for (int64_t row = first; row < first + linear::kTile; ++row) {
      if (row < end)
        read(row, k0, k1, scaled, piece + (row - first));
      else
        for (int64_t k = 0; k < k1 - k0; ++k) piece[k * linear::kTile + (row - first)] = 0;
    }
  }

 private:
  TensorView w_, scales_, zeros_, table_;
  int bits_;
  int64_t depth_, block_;
};

}  // namespace sinter
