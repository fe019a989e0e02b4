// Products of int8 rows by int8 weights with the results of docs/numerics.md: the core of QFullyConnected and
// QConv.
//
// Weights are packed once into panels of q_panel_width() output channels; rows are packed tile by tile, in
// the form that the instruction set multiplies: bytes, or int16 on ARM without dot products of four bytes.
// Sums wrap modulo 2^32, as the reference kernels' do, so that any order gives the same bits.
#pragma once

#include <type_traits>

#include "platforms/simd/int8/conv_tile.h"
#include "platforms/simd/int8/int8.h"

namespace sinter::simd {

constexpr int64_t kQPanel = 32;     // the columns of the widest panel; packed weights are sized for it
constexpr int64_t kQDepth = 4;      // packed depths are multiples of this,
constexpr int64_t kQPairDepth = 8;  // or of this, if pairs of rows are multiplied (gemm_i8mm.h)

// The runs of a window: taps that are adjacent in the buffer are summed as one run, which in packed weights
// takes a multiple of these depths.
struct QRuns {
  int64_t count = 0, length = 0;
  bool pairs = false;
  int64_t unit() const { return pairs ? kQPairDepth : kQDepth; }
  int64_t packed_length() const { return divide_up(length, unit()) * unit(); }
  int64_t depth() const { return count * length; }
  int64_t packed_depth() const { return count * packed_length(); }
};

// The packed weights of one group: panels, then per column int32 bias, float multiplier, int32 zero point,
// and, if products are bounded, int32 sum of its weights.
struct QPacked {
  QRuns runs;
  int64_t columns = 0;
  int8_t* panels = nullptr;
  int32_t* bias = nullptr;
  float* multipliers = nullptr;
  int32_t* zeros = nullptr;  // null if all are 0
  // This is null unless the instruction set bounds products (maddubs-inl.h).
  int32_t* sums = nullptr;
  uint8_t* limits = nullptr;  // of each panel

  // Sets the places of the numbers of `wide` columns, from `at` on.
  void set_numbers(std::byte* at, int64_t wide, bool with_zeros, bool bounded) {
    const auto next = [&](auto** numbers, bool used) {
      if (used) *numbers = reinterpret_cast<std::remove_pointer_t<decltype(numbers)>>(at);
      at += wide * 4;
    };
    next(&bias, true), next(&multipliers, true), next(&zeros, with_zeros);
    if (bounded) next(&sums, true), limits = reinterpret_cast<uint8_t*>(at);
  }
};
// The operands of pack_q_panels, for one group.
struct QWeights {
  const int8_t* weights;  // column c, depth k: at weights[c * column_step + k * depth_step]
  int64_t column_step, depth_step;
  const int32_t* bias;       // may be null
  const float* multipliers;  // per column, or one
  int64_t multiplier_step;
  const int8_t* zeros;  // per column, or one, or null
  int64_t zero_step;
};

// The begins of the rows and runs of one box and one group in the buffer, in elements.
struct QRows {
  const std::byte* buffer = nullptr;
  const int32_t *rows = nullptr, *runs = nullptr;
  const int32_t* sums = nullptr;  // of each row's x - x_zero, if weights have zero points
  int64_t count = 0;
  // Scratch memory of `spare_bytes`, aligned like int64: at least a byte for each kQDepth depths.
  std::byte* spare = nullptr;
  int64_t spare_bytes = 0;
  // Sets it to the rest of `bytes` of memory behind a box of `elements` bytes.
  void set_spare(std::byte* box, int64_t elements, int64_t bytes) {
    const int64_t used = divide_up(elements + kQDepth, 8) * 8;
    spare = box + used, spare_bytes = bytes - used;
  }
  const std::byte* minima = nullptr;  // the numbers that lower_q_rows has subtracted from each row, or null
};

int64_t q_panel_width();
// Returns "qs8_gemm_", rows by columns of a tile, and the instructions with which the set in use multiplies.
const char* q_gemm_name();
// Returns whether the instruction set in use bounds products (maddubs-inl.h).
bool bounds_products();
// Returns the bytes of the numbers of one column, in whole panels of kQPanel columns; limits take at most a
// byte for each 16 depths.
inline int64_t number_bytes(int64_t packed_depth, bool bounded) {
  return 12 + (bounded ? 4 + divide_up(packed_depth, 16) : 0);
}
// The rows from which lowering them and choosing steps is worthwhile.
constexpr int64_t kManyQRows = 16;
// Subtracts from each depth of `count` adjoining rows its smallest number, where that is worthwhile: the
// smaller inputs are, the more products fit. The numbers are stored at `minima`, as a row of
// minima_bytes(length).
void lower_q_rows(std::byte* rows, int64_t count, int64_t length, std::byte* minima);
inline int64_t minima_bytes(int64_t length) { return divide_up(length, 64) * 64; }
// Returns whether the instruction set in use has dot products of four bytes.
bool multiplies_bytes();
// Returns whether rows in the buffer have the form of the input. A row of a multiple of kQDepth is then read
// in place.
bool reads_rows_as_they_are();
void pack_q_panels(const QWeights& w, int32_t x_zero, const QPacked& packed);
// Fills the buffer.
void load_q_box(const Geometry& g, const QBox& box, const int8_t* x, int32_t x_zero, std::byte* buffer);
void sum_q_rows(const QRows& rows, const QRuns& runs, int32_t x_zero, int32_t* sums);
// Multiplies panels first .. end - 1. Row r, column c is stored at result.y[y_rows[r] + c].
void multiply_q(const QPacked& w, const QRows& rows, int64_t first_panel, int64_t end_panel,
                const ProductResult& result, const int64_t* y_rows);

}  // namespace sinter::simd
