// LowBitFullyConnected of few rows, which takes as long as the weights take to arrive.
//
// A warp computes four columns of one row, or two of four rows. A lane reads a segment of each column's
// weights at a time, and the next one before it uses this one; x is in shared memory, as float. The sum of a
// segment of weights is multiplied by their scale once.
#pragma once

#include "platforms/cuda/kernels/low_bit/low_bit.h"
#include "platforms/cuda/kernels/low_bit/low_bit_numbers.h"

namespace sinter::cuda::low_bit_rows {

// The words that a lane reads of a column at a time.
template <int kWords>
struct Segment {
  uint32_t w[kWords] = {};
  LowBitScale by;
};

template <int kBits, int kRows>
struct FewRows {
  static constexpr int kSegment = low_bit_segment(kBits), kRoom = kSegment + 4;
  static constexpr int kStep = kSegment * kWarp;  // of a warp at a time
  static constexpr int kChunk = low_bit_chunk(kRows), kSteps = kChunk / kStep;
  static constexpr int kRowRoom = kChunk / kSegment * kRoom;
  static constexpr int kColumns = low_bit_columns(kRows);
  static constexpr bool kPlanes = low_bit_in_planes(kBits);
  static constexpr int kWords = kSegment * kBits / 32;
  using Piece = Segment<kWords>;

  const LowBitArguments& a;
  Shared<float> x;
  uint32_t first_row, first_column;
  int64_t first_of_expert;  // kRows is 1 where rows have experts

  SINTER_DEVICE void stage(uint32_t k0) const {
    for (int r = 0; r < kRows; ++r) {
      const uint32_t row = first_row + static_cast<uint32_t>(r);
      for (int i = thread_index(); i < kChunk; i += block_threads()) {
        const uint32_t k = k0 + static_cast<uint32_t>(i);
        if (k0 + static_cast<uint32_t>(i / kSegment * kSegment) >= a.depth) break;
        x[r * kRowRoom + i / kSegment * kRoom + i % kSegment] =
            k < a.depth && row < a.rows ? load_float(a.x, a.kind, int64_t{row} * a.depth + k) : 0.0f;
      }
    }
  }
  SINTER_DEVICE void load(uint32_t k, Piece (&to)[kColumns]) const {
    SINTER_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      const uint32_t column = first_column + static_cast<uint32_t>(n);
      if (k >= a.depth || column >= a.columns) continue;
      const std::byte* from = a.w + (first_of_expert + column) * a.pitch + k / kSegment * (kWords * 4);
      if constexpr (kPlanes) {
        SINTER_UNROLL
        for (int i = 0; i < kWords; ++i) to[n].w[i] = reinterpret_cast<const uint32_t*>(from)[i];
      } else {
        const auto words = *reinterpret_cast<const Words<16>*>(from);
        SINTER_UNROLL
        for (int i = 0; i < kWords; ++i) to[n].w[i] = words.w[i];
      }
      to[n].by = low_bit_scale(a, first_of_expert + column, k);
    }
  }
  // With kFraction, zero points have fractions.
  template <bool kFraction>
  SINTER_DEVICE void add(const Piece (&pieces)[kColumns], uint32_t k, int place, const LowBitReader& reader,
                         float (&sums)[kRows][kColumns]) const {
    float base[kColumns], part[kRows][kColumns] = {};
    SINTER_UNROLL
    for (int n = 0; n < kColumns; ++n) base[n] = kFraction ? reader.base : reader.base + pieces[n].by.zero;
    SINTER_UNROLL
    for (int i = 0; i < kSegment; i += 4) {
      Words<16> xs[kRows];
      SINTER_UNROLL
      for (int r = 0; r < kRows; ++r) xs[r] = x.template load<Words<16>>(r * kRowRoom + place * kRoom + i);
      SINTER_UNROLL
      for (int n = 0; n < kColumns; ++n) {
        SINTER_UNROLL
        for (int j = 0; j < 4; ++j) {
          float weight = raised(pieces[n].w, reader, i + j) - base[n];
          if (kFraction) weight -= pieces[n].by.zero;
          SINTER_UNROLL
          for (int r = 0; r < kRows; ++r) part[r][n] = m_fma(float_of(xs[r].w[j]), weight, part[r][n]);
        }
      }
    }
    const uint32_t block = a.row_scales == nullptr ? 0 : a.block_size.divide(k);
    SINTER_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const uint32_t row = first_row + static_cast<uint32_t>(r);
      float unit = 1;
      if (a.row_scales != nullptr && row < a.rows) unit = a.row_scales[int64_t{row} * a.blocks + block];
      SINTER_UNROLL
      for (int n = 0; n < kColumns; ++n)
        sums[r][n] = m_fma(part[r][n], pieces[n].by.scale * unit, sums[r][n]);
    }
  }
  // Returns number i of a segment above 2^23.
  SINTER_DEVICE static float raised(const uint32_t (&words)[kWords], const LowBitReader& reader, int i) {
    if constexpr (kPlanes) {
      return LowBitReader::raised(plane_number<kBits>(words, i));
    } else {
      constexpr int kOfWord = 32 / kBits;
      return LowBitReader::raised<kBits>(words[i / kOfWord] ^ reader.flip, i % kOfWord);
    }
  }

  SINTER_DEVICE void run() const {
    const LowBitReader reader(kBits, a.format.is_signed());
    const bool fraction = a.zeros != nullptr && a.float_zeros != 0;
    float sums[kRows][kColumns] = {};
    Piece pieces[kColumns];
    const auto mine = static_cast<uint32_t>(lane() * kSegment);
    load(mine, pieces);
    const uint32_t steps = (a.depth + kStep - 1) / kStep;
    for (uint32_t step = 0; step < steps; ++step) {
      const int in_chunk = static_cast<int>(step % kSteps);
      if (in_chunk == 0) {
        if (step > 0) barrier();
        stage(step * kStep);
        barrier();
      }
      Piece next[kColumns];
      load((step + 1) * kStep + mine, next);
      if (step * kStep + mine < a.depth) {
        if (fraction)
          add<true>(pieces, step * kStep + mine, in_chunk * kWarp + lane(), reader, sums);
        else
          add<false>(pieces, step * kStep + mine, in_chunk * kWarp + lane(), reader, sums);
      }
      SINTER_UNROLL
      for (int n = 0; n < kColumns; ++n) pieces[n] = next[n];
    }
    SINTER_UNROLL
    for (int r = 0; r < kRows; ++r) SINTER_UNROLL
    for (int n = 0; n < kColumns; ++n) {
      const float sum = fold_warp(sums[r][n], AddUp());
      const uint32_t row = first_row + static_cast<uint32_t>(r),
                     column = first_column + static_cast<uint32_t>(n);
      if (lane() == r * kColumns + n && row < a.rows && column < a.columns)
        store_low_bit(a, row, column, sum, first_of_expert);
    }
  }
};

template <int kBits, int kRows>
SINTER_DEVICE void few_rows(const LowBitArguments& a) {
  using F = FewRows<kBits, kRows>;
  const auto warps = static_cast<uint32_t>(block_threads() / kWarp);
  uint32_t first_row = block_y() * kRows;
  int64_t first_of_expert = 0;
  if constexpr (kRows == 1) {
    // As many rows as experts have may take a third axis of the grid.
    first_row += block_z() * kLowBitRowsOfLaunch;
    if (first_row >= a.rows) return;
    first_of_expert = first_column_of_expert(a, first_row);
  }
  const F f{a, shared_memory<float>(0, kRows * F::kRowRoom), first_row,
            (block_x() * warps + static_cast<uint32_t>(warp_index())) * F::kColumns, first_of_expert};
  f.run();
}

}  // namespace sinter::cuda::low_bit_rows
