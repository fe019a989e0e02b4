// Products of float32 matrices: a block computes a tile of sums that its threads keep in registers, eight by
// eight or four by four each. Tiles of both operands go through shared memory, by depth first, so that a
// thread reads four rows or columns at a time; while one is read, the next one is under way to registers.
// With kNarrow, b's elements are narrower floats, which are widened on the way.
#pragma once

#include "platforms/cuda/kernels/product/narrow_weight.h"
#include "platforms/cuda/kernels/product/product_place.h"

namespace sinter::cuda::product_float {

inline constexpr int kThreads = 256;
inline constexpr int kDepth = 16;  // of a tile
inline constexpr int kPiece = 4;   // floats that are copied at a time
inline constexpr int kPieces = kDepth / kPiece;

struct alignas(16) Four {
  float v[4];
};

// A tile of one operand on its way: kWidth rows of a or columns of b.
template <int kWidth>
struct Tile {
  static constexpr int kCount =
      kWidth * kPieces / kThreads > 0 ? kWidth* kPieces / kThreads : 1;  // pieces a thread
  static constexpr int kStep = kWidth + 4;  // floats from one depth to the next: rows of 16 bytes
  static constexpr int kFloats = kStep * kDepth;
  static constexpr bool kSomeIdle = kWidth * kPieces < kThreads;
  Four piece[kCount];

  SINTER_DEVICE static bool idle() { return kSomeIdle && thread_index() >= kWidth * kPieces; }
  // Pieces along the depth: the row or column of each, and its first depth.
  SINTER_DEVICE static int along_line(int i) { return thread_index() / kPieces + i * (kThreads / kPieces); }
  SINTER_DEVICE static int along_depth() { return thread_index() % kPieces * kPiece; }
  // Pieces across.
  SINTER_DEVICE static int across_line(int i) {
    return (thread_index() + i * kThreads) % (kWidth / kPiece) * kPiece;
  }
  SINTER_DEVICE static int across_depth(int i) { return (thread_index() + i * kThreads) / (kWidth / kPiece); }

  SINTER_DEVICE void put(const Shared<float>& to, bool across) const {
    if (idle()) return;
    SINTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (across) {
        to.store(across_depth(i) * kStep + across_line(i), piece[i]);
      } else {
        SINTER_UNROLL
        for (int j = 0; j < kPiece; ++j) to[(along_depth() + j) * kStep + along_line(i)] = piece[i].v[j];
      }
    }
  }
};

// Reads a matrix whose elements of one depth are adjacent: up to `lines` of them.
template <int kWidth>
SINTER_DEVICE void read_across(Tile<kWidth>& to, const float* from, int64_t step, uint32_t first,
                               uint32_t lines, uint32_t depth, uint32_t end, bool vectors) {
  SINTER_UNROLL
  for (int i = 0; i < to.kCount; ++i) {
    const uint32_t line = first + static_cast<uint32_t>(to.across_line(i));
    const uint32_t k = depth + static_cast<uint32_t>(to.across_depth(i));
    to.piece[i] = {};
    if (k >= end) continue;
    const float* at = from + static_cast<int64_t>(k) * step + line;
    if (vectors) {
      if (line < lines) to.piece[i] = *reinterpret_cast<const Four*>(at);
    } else {
      SINTER_UNROLL
      for (int j = 0; j < kPiece; ++j)
        if (line + static_cast<uint32_t>(j) < lines) to.piece[i].v[j] = at[j];
    }
  }
}

template <int kWidth>
SINTER_DEVICE void read_windows(Tile<kWidth>& to, const float* from, const WindowRows& w,
                                const WindowStart (&starts)[Tile<kWidth>::kCount], uint32_t depth,
                                uint32_t end, bool vectors) {
  const uint32_t k = depth + static_cast<uint32_t>(to.along_depth());
  SINTER_UNROLL
  for (int i = 0; i < to.kCount; ++i) to.piece[i] = {};
  if (vectors) {
    if (k >= end) return;
    const WindowTap tap = window_tap(w, k);
    SINTER_UNROLL
    for (int i = 0; i < to.kCount; ++i) {
      const int64_t at = starts[i].image < 0 ? -1 : window_element(w, starts[i], tap);
      if (at >= 0) to.piece[i] = *reinterpret_cast<const Four*>(from + at);
    }
    return;
  }
  SINTER_UNROLL
  for (int j = 0; j < kPiece; ++j) {
    if (k + static_cast<uint32_t>(j) >= end) return;
    const WindowTap tap = window_tap(w, k + static_cast<uint32_t>(j));
    SINTER_UNROLL
    for (int i = 0; i < to.kCount; ++i) {
      const int64_t at = starts[i].image < 0 ? -1 : window_element(w, starts[i], tap);
      if (at >= 0) to.piece[i].v[j] = from[at];
    }
  }
}

// Reads four narrow weights from element i on.
SINTER_DEVICE Four read_narrow(const std::byte* from, DType type, int64_t i) {
  return for_narrow_float(type, [&](auto zero) {
    using W = decltype(zero);
    struct alignas(4 * sizeof(W)) Weights {
      W v[4];
    };
    const auto w = *reinterpret_cast<const Weights*>(reinterpret_cast<const W*>(from) + i);
    return Four{{widen(w.v[0]), widen(w.v[1]), widen(w.v[2]), widen(w.v[3])}};
  });
}

// `from` is the first element of b's matrix of the product, of which element 0 is a.b's number `base`.
template <bool kNarrow, int kWidth>
SINTER_DEVICE void read_filters(Tile<kWidth>& to, const float* from, int64_t base, const ProductArguments& a,
                                const ProductPart& part, uint32_t first, uint32_t depth, uint32_t end,
                                bool vectors) {
  const uint32_t k = depth + static_cast<uint32_t>(to.along_depth());
  SINTER_UNROLL
  for (int i = 0; i < to.kCount; ++i) to.piece[i] = {};
  SINTER_UNROLL
  for (int j = 0; j < kPiece; ++j) {
    if (k + static_cast<uint32_t>(j) >= end) return;
    const int64_t at =
        a.phases != 0 ? filter_element(part, part.window, k + static_cast<uint32_t>(j)) : int64_t{k} + j;
    SINTER_UNROLL
    for (int i = 0; i < to.kCount; ++i) {
      const uint32_t column = first + static_cast<uint32_t>(to.along_line(i));
      if (column >= a.columns) continue;
      const int64_t place = static_cast<int64_t>(column) * a.b_step + at;
      if constexpr (kNarrow) {
        if (vectors)
          to.piece[i] = read_narrow(a.b, a.narrow, base + place);
        else
          to.piece[i].v[j] = narrow_weight(a.b, a.narrow, base + place);
        continue;
      }
      const float* line = from + place;
      if (vectors)
        to.piece[i] = *reinterpret_cast<const Four*>(line);
      else
        to.piece[i].v[j] = *line;
    }
    if (vectors) return;
  }
}

// A block computes kRows x kColumns sums, a thread kDown x kRight.
template <bool kNarrow, int kRows, int kColumns, int kDown, int kRight>
SINTER_DEVICE void multiply_tile(const ProductArguments& a) {
  using TileA = Tile<kRows>;
  using TileB = Tile<kColumns>;
  constexpr int kStage = TileA::kFloats + TileB::kFloats;
  constexpr int kRight4 = kColumns / kRight;  // threads along a row
  static_assert(kRows / kDown * kRight4 == kThreads);
  static_assert(2 * kStage * sizeof(float) == float_tile_bytes(kRows, kColumns));
  const ProductPart& part = a.parts[block_z()];
  const WindowRows& w = part.window;
  const ProductTile tile = tile_of_block<kRows, kColumns>(a, part);
  if (tile.row >= part.rows) return;  // the whole block
  const Shared<float> room = shared_memory<float>(0, 2 * kStage);
  const TileOperands<float> from = operands_of<float>(a, tile.product);
  const int64_t base = kNarrow ? offset_of(a.products, a.b_steps, tile.product) : 0;
  WindowStart starts[TileA::kCount];
  if (!from.a_across)
    find_windows(
        part, tile.row, [](int i) { return TileA::along_line(i); }, starts);
  TileA next_a;
  TileB next_b;
  const auto read = [&](uint32_t depth) {
    if (!TileA::idle()) {
      if (from.a_across)
        read_across(next_a, from.a, a.a_step, tile.row, part.rows, depth, tile.end, from.a_vectors);
      else
        read_windows(next_a, from.a, w, starts, depth, tile.end, from.a_vectors);
    }
    if (!TileB::idle()) {
      if (!kNarrow && from.b_across)
        read_across(next_b, from.b, a.b_step, tile.column, a.columns, depth, tile.end, from.b_vectors);
      else
        read_filters<kNarrow>(next_b, from.b, base, a, part, tile.column, depth, tile.end, from.b_vectors);
    }
  };

  float sum[kDown][kRight] = {};
  const int down = thread_index() / kRight4 * 4, right = thread_index() % kRight4 * 4;
  if (tile.begin < tile.end) {
    read(tile.begin);
    next_a.put(room, from.a_across);
    next_b.put(room + TileA::kFloats, from.b_across);
  }
  barrier();
  int stage = 0;
  for (uint32_t depth = tile.begin; depth < tile.end; depth += kDepth, stage ^= 1) {
    const bool more = depth + kDepth < tile.end;
    if (more) read(depth + kDepth);
    const Shared<float> at_a = room + stage * kStage, at_b = at_a + TileA::kFloats;
    SINTER_UNROLL
    for (int k = 0; k < kDepth; ++k) {
      Four x[kDown / 4], y[kRight / 4];
      SINTER_UNROLL
      for (int i = 0; i < kDown / 4; ++i)
        x[i] = at_a.template load<Four>(k * TileA::kStep + down + i * (kRows * 4 / kDown));
      SINTER_UNROLL
      for (int j = 0; j < kRight / 4; ++j)
        y[j] = at_b.template load<Four>(k * TileB::kStep + right + j * (kColumns * 4 / kRight));
      SINTER_UNROLL
      for (int i = 0; i < kDown; ++i) SINTER_UNROLL
      for (int j = 0; j < kRight; ++j) sum[i][j] = m_fma(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sum[i][j]);
    }
    if (more) {
      const Shared<float> to = room + (stage ^ 1) * kStage;
      next_a.put(to, from.a_across);
      next_b.put(to + TileA::kFloats, from.b_across);
    }
    barrier();
  }

  const bool split = a.splits > 1;
  const bool fours =
      a.columns % 4 == 0 && (split || (a.y_step % 4 == 0 && a.y_product % 4 == 0 && begins_sixteen(a.y)));
  SINTER_UNROLL
  for (int i = 0; i < kDown; ++i) {
    const uint32_t row = tile.row + static_cast<uint32_t>(down + i / 4 * (kRows * 4 / kDown) + i % 4);
    if (row >= part.rows) continue;
    float* to;
    if (split)
      to = sums_of_row(a, part, tile.product, row);
    else
      to = reinterpret_cast<float*>(a.y) + tile.product * a.y_product + row_of_result(a, part, row);
    SINTER_UNROLL
    for (int j = 0; j < kRight / 4; ++j) {
      const uint32_t column = tile.column + static_cast<uint32_t>(right + j * (kColumns * 4 / kRight));
      Four v;
      SINTER_UNROLL
      for (int l = 0; l < 4; ++l) {
        v.v[l] = sum[i][j * 4 + l];
        if (!split && column + static_cast<uint32_t>(l) < a.columns)
          v.v[l] = finish_sum<float>(a, v.v[l], tile.product, column + static_cast<uint32_t>(l));
      }
      if (fours) {
        if (column < a.columns) *reinterpret_cast<Four*>(to + column) = v;
      } else {
        SINTER_UNROLL
        for (int l = 0; l < 4; ++l)
          if (column + static_cast<uint32_t>(l) < a.columns) to[column + static_cast<uint32_t>(l)] = v.v[l];
      }
    }
  }
}

}  // namespace sinter::cuda::product_float
