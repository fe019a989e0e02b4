// Products of few rows, which take as long as reading b. A warp, or several, have two columns. Lanes read 16
// bytes of a column each; a's rows are in the caches. b's elements have a's type T, or a narrower type W.
#pragma once

#include "platforms/cuda/kernels/product/product_place.h"

namespace sinter::cuda::product_rows {

inline constexpr int kThreads = 256, kWarps = kThreads / kWarp;

// The elements that a lane reads at a time.
template <class T, int kCount>
struct alignas(16) Run {
  T v[kCount];
};

// Reads up to kCount elements, with zeros behind the first `count`. The order of sums is the same wherever
// operands begin.
template <int kCount, class T>
SINTER_DEVICE Run<T, kCount> read_some(const T* from, int64_t count, bool vectors) {
  static_assert(sizeof(Run<T, kCount>) == sizeof(T) * kCount);
  if (vectors) return *reinterpret_cast<const Run<T, kCount>*>(from);
  Run<T, kCount> p = {};
  SINTER_UNROLL
  for (int i = 0; i < kCount; ++i)
    if (i < count) p.v[i] = from[i];
  return p;
}

template <class T, class W, int kRows>
SINTER_DEVICE void multiply_rows(const ProductArguments& a) {
  constexpr int kColumns = kRowsColumns, kSums = kRows * kColumns, kPiece = 16 / sizeof(W);
  const ProductPart& part = a.parts[0];
  const int shares = a.warps_per_column, share = warp_index() % shares;
  uint32_t group;
  const uint32_t product = a.column_tiles.divide(block_x(), &group);
  const uint32_t column =
      (group * static_cast<uint32_t>(kWarps / shares) + static_cast<uint32_t>(warp_index() / shares)) *
      kColumns;
  const T* from_a = reinterpret_cast<const T*>(a.a) + offset_of(a.products, a.a_steps, product);
  const ProductMatrix matrix = matrix_of(a, product);
  const W* from_b = reinterpret_cast<const W*>(a.b) + matrix.first;
  // Rows and columns beyond the last repeat the last.
  const T* row[kRows];
  const W* filter[kColumns];
  SINTER_UNROLL
  for (int i = 0; i < kRows; ++i) {
    const uint32_t r = static_cast<uint32_t>(i) < part.rows ? static_cast<uint32_t>(i) : part.rows - 1;
    row[i] = from_a + r * part.window.in_step;
  }
  SINTER_UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const uint32_t c = column + static_cast<uint32_t>(j);
    filter[j] = from_b + (c < a.columns ? c : a.columns - 1) * a.b_step;
  }

  float sum[kSums] = {};
  const auto depth = int64_t{part.depth};
  const bool vectors = a.a_vectors != 0 && a.b_vectors != 0 && begins_sixteen(a.a) && begins_sixteen(a.b);
  for (int64_t k = (share * kWarp + lane()) * kPiece; k < depth; k += shares * kWarp * kPiece) {
    Run<W, kPiece> y[kColumns];
    SINTER_UNROLL
    for (int j = 0; j < kColumns; ++j) y[j] = read_some<kPiece>(filter[j] + k, depth - k, vectors);
    SINTER_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const auto x = read_some<kPiece>(row[i] + k, depth - k, vectors);
      SINTER_UNROLL
      for (int j = 0; j < kColumns; ++j) SINTER_UNROLL
      for (int l = 0; l < kPiece; ++l)
        sum[i * kColumns + j] = m_fma(widen(x.v[l]), widen(y[j].v[l]), sum[i * kColumns + j]);
    }
  }

  // Lane n gets sum n.
  float mine = 0;
  SINTER_UNROLL
  for (int n = 0; n < kSums; ++n) {
    const float all = fold_warp(sum[n], AddUp{});
    if (lane() == n) mine = all;
  }
  if (shares > 1) {
    const Shared<float> room = shared_memory<float>(0, kThreads);
    room[thread_index()] = mine;
    barrier();
    if (share == 0)
      for (int s = 1; s < shares; ++s) mine += room[thread_index() + s * kWarp];
  }
  const auto r = static_cast<uint32_t>(lane() / kColumns),
             c = column + static_cast<uint32_t>(lane() % kColumns);
  if (share != 0 || lane() >= kSums || r >= part.rows || c >= a.columns) return;
  narrow(finish_sum<T>(a, mine, matrix.bias, c),
         reinterpret_cast<T*>(a.y) + product * a.y_product + r * a.y_step + c);
}

// There are fewer sizes where the types differ, because a compiler takes long for each.
template <class T, class W>
SINTER_DEVICE void multiply_few(const ProductArguments& a) {
  constexpr bool kSame = sizeof(T) == sizeof(W);
  const uint32_t rows = a.parts[0].rows;
  if (rows == 1) return multiply_rows<T, W, 1>(a);
  if constexpr (kSame) {
    if (rows == 2) return multiply_rows<T, W, 2>(a);
    if (rows <= 4) return multiply_rows<T, W, 4>(a);
  }
  multiply_rows<T, W, kMostFewRows>(a);
}

}  // namespace sinter::cuda::product_rows
