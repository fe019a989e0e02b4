// Products of float16 and bfloat16 matrices on tensor cores, with float sums. A block computes a tile of
// sums, each of its warps a part of it in fragments (grid/warp.h). Tiles of both operands are copied to
// shared memory three deep, in the order in which they are in memory, and read from there as fragments,
// transposed where they must be.
#pragma once

#include "platforms/cuda/kernels/product/product_place.h"

namespace sinter::cuda {

namespace half_product {

inline constexpr int kDepth = 32;  // of a tile
inline constexpr int kPiece = 8;   // elements that are copied at a time: 16 bytes
inline constexpr int kPieces = kDepth / kPiece;
inline constexpr int kStages = 3;
inline constexpr int kPad = 8;  // elements between lines, so that eight of them are in different banks

struct alignas(16) Eight {
  uint16_t v[kPiece];
};

// Half is the elements, which are only moved here.
using Half = uint16_t;

// A tile of one operand: kWidth rows of a or columns of b, of kThreads threads.
template <int kWidth, int kThreads>
struct Tile {
  static constexpr int kCount = kWidth * kPieces / kThreads;  // pieces a thread
  static_assert(kCount > 0 && kThreads % (kWidth / kPiece) == 0);
  static constexpr int kAlong = kDepth + kPad, kAcross = kWidth + kPad;  // elements from a line to the next
  static constexpr int kElements = kWidth * kAlong > kDepth* kAcross ? kWidth* kAlong : kDepth* kAcross;

  SINTER_DEVICE static int line(int i) { return thread_index() / kPieces + i * (kThreads / kPieces); }
  SINTER_DEVICE static int depth() { return thread_index() % kPieces * kPiece; }
  SINTER_DEVICE static int place(int i) { return line(i) * kAlong + depth(); }
  SINTER_DEVICE static int across_line() { return thread_index() % (kWidth / kPiece) * kPiece; }
  SINTER_DEVICE static int across_depth(int i) {
    return thread_index() / (kWidth / kPiece) + i * (kThreads / (kWidth / kPiece));
  }

  // Copies a matrix whose elements of one depth are adjacent: up to `lines` of them.
  SINTER_DEVICE static void copy_across(const Shared<Half>& to, const Half* from, int64_t step,
                                        uint32_t first, uint32_t lines, uint32_t from_depth, uint32_t end,
                                        bool vectors) {
    const uint32_t at = first + static_cast<uint32_t>(across_line());
    SINTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const uint32_t k = from_depth + static_cast<uint32_t>(across_depth(i));
      const int place = across_depth(i) * kAcross + across_line();
      const Half* source = from + static_cast<int64_t>(k) * step + at;
      if (vectors) {
        const bool inside = k < end && at < lines;
        copy_async(to, place, inside ? source : from, inside ? 16 : 0);
        continue;
      }
      Eight v = {};
      SINTER_UNROLL
      for (int j = 0; j < kPiece; ++j)
        if (k < end && at + static_cast<uint32_t>(j) < lines) v.v[j] = source[j];
      to.store(place, v);
    }
  }

  SINTER_DEVICE static void copy_windows(const Shared<Half>& to, const Half* from, const WindowRows& w,
                                         const WindowStart (&starts)[kCount], uint32_t from_depth,
                                         uint32_t end, bool vectors) {
    const uint32_t k = from_depth + static_cast<uint32_t>(depth());
    if (vectors) {
      const WindowTap tap = window_tap(w, k < end ? k : 0);
      SINTER_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const int64_t at = starts[i].image < 0 || k >= end ? -1 : window_element(w, starts[i], tap);
        copy_async(to, place(i), at < 0 ? from : from + at, at < 0 ? 0 : 16);
      }
      return;
    }
    Eight v[kCount] = {};
    SINTER_UNROLL
    for (int j = 0; j < kPiece; ++j) {
      const bool inside = k + static_cast<uint32_t>(j) < end;
      const WindowTap tap = window_tap(w, inside ? k + static_cast<uint32_t>(j) : 0);
      SINTER_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const int64_t at = starts[i].image < 0 || !inside ? -1 : window_element(w, starts[i], tap);
        if (at >= 0) v[i].v[j] = from[at];
      }
    }
    SINTER_UNROLL
    for (int i = 0; i < kCount; ++i) to.store(place(i), v[i]);
  }

  SINTER_DEVICE static void copy_filters(const Shared<Half>& to, const Half* from, const ProductArguments& a,
                                         const ProductPart& part, uint32_t first, uint32_t from_depth,
                                         uint32_t end, bool vectors) {
    const uint32_t k = from_depth + static_cast<uint32_t>(depth());
    if (vectors) {
      const int64_t at = a.phases != 0 && k < end ? filter_element(part, part.window, k) : int64_t{k};
      SINTER_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const uint32_t column = first + static_cast<uint32_t>(line(i));
        const bool inside = k < end && column < a.columns;
        copy_async(to, place(i), inside ? from + column * a.b_step + at : from, inside ? 16 : 0);
      }
      return;
    }
    Eight v[kCount] = {};
    SINTER_UNROLL
    for (int j = 0; j < kPiece; ++j) {
      const uint32_t one = k + static_cast<uint32_t>(j);
      if (one >= end) break;
      const int64_t at = a.phases != 0 ? filter_element(part, part.window, one) : int64_t{one};
      SINTER_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const uint32_t column = first + static_cast<uint32_t>(line(i));
        if (column < a.columns) v[i].v[j] = from[column * a.b_step + at];
      }
    }
    SINTER_UNROLL
    for (int i = 0; i < kCount; ++i) to.store(place(i), v[i]);
  }
};

SINTER_DEVICE void multiply_words(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Float16) {
  multiply_float16(d, a, b);
}
SINTER_DEVICE void multiply_words(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], BFloat16) {
  multiply_bfloat16(d, a, b);
}

template <class V>
struct alignas(2 * sizeof(V)) Pair {
  V v[2];
};

// Adds the products of the rows and columns of a warp in one stage to its sums.
template <class T, class TileA, class TileB, int kDown, int kRight>
SINTER_DEVICE void multiply_stage(const Shared<Half>& at_a, bool a_across, const Shared<Half>& at_b,
                                  bool b_across, int first_row, int first_column,
                                  float (&sum)[kDown / 16][kRight / 8][4]) {
  SINTER_UNROLL
  for (int k = 0; k < kDepth; k += 16) {
    uint32_t x[kDown / 16][4], y[kRight / 8][2];
    SINTER_UNROLL
    for (int i = 0; i < kDown / 16; ++i) {
      const int row = first_row + i * 16;
      if (a_across)
        load_transposed(x[i], at_a,
                        (k + lane() / 16 * 8 + lane() % 8) * TileA::kAcross + row + lane() / 8 % 2 * 8);
      else
        load_matrices(x[i], at_a, (row + lane() % 16) * TileA::kAlong + k + lane() / 16 * 8);
    }
    SINTER_UNROLL
    for (int j = 0; j < kRight / 16; ++j) {
      const int column = first_column + j * 16;
      uint32_t both[4];
      if (b_across)
        load_transposed(both, at_b, (k + lane() % 16) * TileB::kAcross + column + lane() / 16 * 8);
      else
        load_matrices(both, at_b,
                      (column + lane() / 16 * 8 + lane() % 8) * TileB::kAlong + k + lane() / 8 % 2 * 8);
      y[2 * j][0] = both[0], y[2 * j][1] = both[1];
      y[2 * j + 1][0] = both[2], y[2 * j + 1][1] = both[3];
    }
    SINTER_UNROLL
    for (int i = 0; i < kDown / 16; ++i) SINTER_UNROLL
    for (int j = 0; j < kRight / 8; ++j) multiply_words(sum[i][j], x[i], y[j], T{});
  }
}

// Multiplies kRows x kColumns a block, kDown x kRight a warp.
template <class T, int kRows, int kColumns, int kDown, int kRight>
SINTER_DEVICE void multiply_tile(const ProductArguments& a) {
  constexpr int kRightWarps = kColumns / kRight, kThreads = kRows / kDown * kRightWarps * kWarp;
  using TileA = Tile<kRows, kThreads>;
  using TileB = Tile<kColumns, kThreads>;
  constexpr int kStage = TileA::kElements + TileB::kElements;
  static_assert(kStages * kStage * sizeof(Half) == half_tile_bytes(kRows, kColumns));
  const ProductPart& part = a.parts[block_z()];
  const WindowRows& w = part.window;
  const ProductTile tile = tile_of_block<kRows, kColumns>(a, part);
  if (tile.row >= part.rows) return;  // the whole block
  const Shared<Half> room = shared_memory<Half>(0, kStages * kStage);
  const TileOperands<Half> from = operands_of<Half>(a, tile.product);
  WindowStart starts[TileA::kCount];
  if (!from.a_across)
    find_windows(
        part, tile.row, [](int i) { return TileA::line(i); }, starts);
  const auto copy = [&](int stage, uint32_t depth) {
    if (depth < tile.end) {
      const Shared<Half> to_a = room + stage * kStage, to_b = to_a + TileA::kElements;
      if (from.a_across)
        TileA::copy_across(to_a, from.a, a.a_step, tile.row, part.rows, depth, tile.end, from.a_vectors);
      else
        TileA::copy_windows(to_a, from.a, w, starts, depth, tile.end, from.a_vectors);
      if (from.b_across)
        TileB::copy_across(to_b, from.b, a.b_step, tile.column, a.columns, depth, tile.end, from.b_vectors);
      else
        TileB::copy_filters(to_b, from.b, a, part, tile.column, depth, tile.end, from.b_vectors);
    }
    commit_copies();
  };

  const int first_row = warp_index() / kRightWarps * kDown,
            first_column = warp_index() % kRightWarps * kRight;
  float sum[kDown / 16][kRight / 8][4] = {};
  for (int s = 0; s < kStages - 1; ++s) copy(s, tile.begin + static_cast<uint32_t>(s * kDepth));
  int stage = 0;
  for (uint32_t depth = tile.begin; depth < tile.end; depth += kDepth) {
    wait_for_copies<kStages - 2>();
    barrier();
    copy(stage == 0 ? kStages - 1 : stage - 1, depth + (kStages - 1) * kDepth);
    const Shared<Half> at_a = room + stage * kStage, at_b = at_a + TileA::kElements;
    multiply_stage<T, TileA, TileB, kDown, kRight>(at_a, from.a_across, at_b, from.b_across, first_row,
                                                   first_column, sum);
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
  wait_for_copies<0>();

  const bool split = a.splits > 1;
  const bool pairs = a.columns % 2 == 0 && a.y_step % 2 == 0 && a.y_product % 2 == 0 &&
                     (reinterpret_cast<uintptr_t>(a.y) & 3) == 0;
  SINTER_UNROLL
  for (int i = 0; i < kDown / 16; ++i) SINTER_UNROLL
  for (int half = 0; half < 2; ++half) {
    const uint32_t row = tile.row + static_cast<uint32_t>(first_row + i * 16 + half * 8 + lane() / 4);
    if (row >= part.rows) continue;
    float* sums = nullptr;
    T* to = nullptr;
    if (split)
      sums = sums_of_row(a, part, tile.product, row);
    else
      to = reinterpret_cast<T*>(a.y) + tile.product * a.y_product + row_of_result(a, part, row);
    SINTER_UNROLL
    for (int j = 0; j < kRight / 8; ++j) {
      const uint32_t column = tile.column + static_cast<uint32_t>(first_column + j * 8 + lane() % 4 * 2);
      Pair<T> v;
      SINTER_UNROLL
      for (int l = 0; l < 2; ++l) {
        const uint32_t one = column + static_cast<uint32_t>(l);
        if (one >= a.columns) continue;
        if (split)
          sums[one] = sum[i][j][half * 2 + l];
        else
          narrow(finish_sum<T>(a, sum[i][j][half * 2 + l], tile.product, one), &v.v[l]);
      }
      if (split) continue;
      if (pairs) {
        if (column < a.columns) *reinterpret_cast<Pair<T>*>(to + column) = v;
      } else {
        SINTER_UNROLL
        for (int l = 0; l < 2; ++l)
          if (column + static_cast<uint32_t>(l) < a.columns) to[column + static_cast<uint32_t>(l)] = v.v[l];
      }
    }
  }
}

}  // namespace half_product

}  // namespace sinter::cuda
