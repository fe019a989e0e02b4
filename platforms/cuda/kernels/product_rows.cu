// Products of few rows, which take as long as reading b does: a warp, or several, for two columns. Lanes read
// 16 bytes of a column each; a's rows are in the caches.
#include "platforms/cuda/kernels/product_place.h"

namespace sinter::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;

// Up to `count` elements, zeros behind them. The order of sums is the same wherever operands begin.
template <class T>
SINTER_DEVICE Piece<T> read_some(const T* from, int64_t count, bool vectors) {
  if (vectors) return *reinterpret_cast<const Piece<T>*>(from);
  Piece<T> p = {};
  SINTER_UNROLL
  for (int i = 0; i < Piece<T>::kCount; ++i)
    if (i < count) p.v[i] = from[i];
  return p;
}

template <class T, int kRows>
SINTER_DEVICE void multiply_rows(const ProductArguments& a) {
  constexpr int kColumns = kRowsColumns, kSums = kRows * kColumns, kPiece = Piece<T>::kCount;
  const ProductPart& part = a.parts[0];
  const int shares = a.warps_per_column, share = warp_index() % shares;
  uint32_t group;
  const uint32_t product = a.column_tiles.divide(block_x(), &group);
  const uint32_t column =
      (group * static_cast<uint32_t>(kWarps / shares) + static_cast<uint32_t>(warp_index() / shares)) *
      kColumns;
  const T* from_a = reinterpret_cast<const T*>(a.a) + offset_of(a.products, a.a_steps, product);
  const T* from_b = reinterpret_cast<const T*>(a.b) + offset_of(a.products, a.b_steps, product);
  // Rows and columns beyond the last are the last.
  const T *row[kRows], *filter[kColumns];
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
    Piece<T> y[kColumns];
    SINTER_UNROLL
    for (int j = 0; j < kColumns; ++j) y[j] = read_some(filter[j] + k, depth - k, vectors);
    SINTER_UNROLL
    for (int i = 0; i < kRows; ++i) {
      const Piece<T> x = read_some(row[i] + k, depth - k, vectors);
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
  narrow(finish_sum<T>(a, mine, product, c),
         reinterpret_cast<T*>(a.y) + product * a.y_product + r * a.y_step + c);
}

template <class T>
SINTER_DEVICE void multiply_few(const ProductArguments& a) {
  const uint32_t rows = a.parts[0].rows;
  if (rows == 1) return multiply_rows<T, 1>(a);
  if (rows == 2) return multiply_rows<T, 2>(a);
  if (rows <= 4) return multiply_rows<T, 4>(a);
  multiply_rows<T, kMostFewRows>(a);
}

}  // namespace

// Blocks are [product, group of columns]; column_tiles are those groups.
SINTER_KERNEL(product_rows_float, ProductArguments) { multiply_few<float>(a); }
SINTER_KERNEL(product_rows_float16, ProductArguments) { multiply_few<Float16>(a); }
SINTER_KERNEL(product_rows_bfloat16, ProductArguments) { multiply_few<BFloat16>(a); }

}  // namespace sinter::cuda
