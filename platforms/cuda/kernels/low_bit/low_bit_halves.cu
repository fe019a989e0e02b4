// LowBitFullyConnected of many rows of 16-bit floats, on tensor cores.
//
// The factors are exact: x, and a weight less its zero point, an integer of at most 255 in size. The sum of
// 32 products is multiplied by the scale of their block in float. A block of threads computes 64 rows and
// columns, each of its four warps 32; a lane takes its words of both operands from 16 adjacent bytes, as in
// q_product.cu.
#include "platforms/cuda/kernels/low_bit/low_bit_numbers.h"

namespace sinter::cuda {
namespace {

constexpr int kTile = kLowBitTile, kDepth = kLowBitDepth, kThreads = 128;
constexpr int kHalf = kDepth / 2;  // elements that a thread brings of each operand
constexpr int kRowFragments = 2, kColumnFragments = 4, kAdjacent = 2 * kColumnFragments;
static_assert(kTile * 2 == kThreads);

SINTER_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Float16) {
  multiply_float16(d, a, b);
}
SINTER_DEVICE void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], BFloat16) {
  multiply_bfloat16(d, a, b);
}

struct Weights {
  Words<16> w = {};  // 16 numbers: 8 bytes of 4 bits each, or all
  LowBitScale by;
};

template <class T>
struct Tile {
  const LowBitArguments& a;
  uint32_t first_row, first_column;
  LowBitReader reader;

  SINTER_DEVICE int line() const { return thread_index() / 2; }
  SINTER_DEVICE int half() const { return thread_index() % 2 * kHalf; }

  SINTER_DEVICE void load_x(uint32_t k0, Words<16> (&to)[2]) const {
    to[0] = to[1] = {};
    const uint32_t row = first_row + static_cast<uint32_t>(line()), k = k0 + static_cast<uint32_t>(half());
    if (row >= a.rows) return;
    const auto* from = reinterpret_cast<const T*>(a.x) + int64_t{row} * a.depth;
    if (a.depth % 8 == 0 && is_aligned(a.x, 16)) {
      if (k < a.depth) to[0] = *reinterpret_cast<const Words<16>*>(from + k);
      if (k + 8 < a.depth) to[1] = *reinterpret_cast<const Words<16>*>(from + k + 8);
      return;
    }
    SINTER_UNROLL
    for (int i = 0; i < kHalf; ++i)
      if (k + static_cast<uint32_t>(i) < a.depth)
        to[i / 8].w[i % 8 / 2] |= static_cast<uint32_t>(from[k + static_cast<uint32_t>(i)].bits)
                                  << (i % 2 * 16);
  }
  SINTER_DEVICE void load_w(uint32_t k0, Weights* to) const {
    *to = {};
    const uint32_t column = first_column + static_cast<uint32_t>(line()),
                   k = k0 + static_cast<uint32_t>(half());
    if (column >= a.columns || k0 >= a.depth) return;
    to->by = low_bit_scale(a, column, k0);
    if (k >= a.depth) return;
    const std::byte* from = a.w + int64_t{column} * a.pitch;
    if (low_bit_in_planes(a.format.bits)) {
      to->w = sixteen_of_planes(a.format.bits, from, k);
    } else if (a.format.bits == 4) {
      const auto v = *reinterpret_cast<const Words<8>*>(from + k / 2);
      to->w.w[0] = v.w[0], to->w.w[1] = v.w[1];
    } else {
      to->w = *reinterpret_cast<const Words<16>*>(from + k);
    }
  }
  // Stores a stage: rows of 32 elements of x, then of weights; behind them the scales.
  SINTER_DEVICE void store(const Shared<uint16_t>& stage, const Shared<float>& scales,
                           const Words<16> (&xs)[2], const Weights& ws) const {
    const int at = line() * kDepth + half();
    stage.store(at, xs[0]);
    stage.store(at + 8, xs[1]);
    if (a.format.bits == 4)
      widen_weights<4>(stage, kTile * kDepth + at, ws);
    else
      widen_weights<8>(stage, kTile * kDepth + at, ws);
    if (half() == 0) scales[line()] = ws.by.scale;
  }
  template <int kBits>
  SINTER_DEVICE void widen_weights(const Shared<uint16_t>& stage, int at, const Weights& ws) const {
    constexpr int kOfWord = 32 / kBits;
    const float base = reader.base + ws.by.zero;
    Words<16> to[2];
    SINTER_UNROLL
    for (int i = 0; i < kHalf; i += 2) {
      T two[2];
      SINTER_UNROLL
      for (int j = 0; j < 2; ++j) {
        const uint32_t word = ws.w.w[(i + j) / kOfWord] ^ reader.flip;
        narrow(LowBitReader::raised<kBits>(word, (i + j) % kOfWord) - base, &two[j]);
      }
      to[i / 8].w[i % 8 / 2] = two[0].bits | static_cast<uint32_t>(two[1].bits) << 16;
    }
    stage.store(at, to[0]);
    stage.store(at + 8, to[1]);
  }

  // `k` is the stage's first element of the depth.
  SINTER_DEVICE void add(const Shared<uint16_t>& stage, const Shared<float>& scales, uint32_t k,
                         float (&sums)[kRowFragments][kColumnFragments][4]) const {
    const int g = lane() / 4, t = lane() % 4;
    const int row0 = warp_index() / 2 * (kTile / 2), column0 = warp_index() % 2 * (kTile / 2);
    Words<16> b[kColumnFragments], by[2];
    SINTER_UNROLL
    for (int j = 0; j < kColumnFragments; ++j)
      b[j] = stage.load<Words<16>>((kTile + column0 + g / 2 * kAdjacent + 2 * j + g % 2) * kDepth + t * 8);
    by[0] = scales.load<Words<16>>(column0 + t * kAdjacent);
    by[1] = scales.load<Words<16>>(column0 + t * kAdjacent + 4);
    SINTER_UNROLL
    for (int i = 0; i < kRowFragments; ++i) {
      float unit[2] = {1, 1};
      if (a.row_scales != nullptr) {
        SINTER_UNROLL
        for (int half = 0; half < 2; ++half) {
          const uint32_t row = first_row + static_cast<uint32_t>(row0 + 16 * i + 8 * half + g);
          if (row < a.rows) unit[half] = a.row_scales[int64_t{row} * a.blocks + a.block_size.divide(k)];
        }
      }
      const auto upper = stage.load<Words<16>>((row0 + 16 * i + g) * kDepth + t * 8);
      const auto lower = stage.load<Words<16>>((row0 + 16 * i + g + 8) * kDepth + t * 8);
      SINTER_UNROLL
      for (int j = 0; j < kColumnFragments; ++j) {
        float part[4] = {};
        SINTER_UNROLL
        for (int h = 0; h < 4; h += 2) {
          const uint32_t fragment[4] = {upper.w[h], lower.w[h], upper.w[h + 1], lower.w[h + 1]};
          const uint32_t other[2] = {b[j].w[h], b[j].w[h + 1]};
          multiply(part, fragment, other, T{});
        }
        SINTER_UNROLL
        for (int n = 0; n < 4; ++n) {
          const int column = 2 * j + n % 2;
          const float scale = float_of(by[column / 4].w[column % 4]) * unit[n / 2];
          sums[i][j][n] = m_fma(part[n], scale, sums[i][j][n]);
        }
      }
    }
  }

  SINTER_DEVICE void give(const float (&sums)[kRowFragments][kColumnFragments][4]) const {
    const uint32_t column0 =
        first_column + static_cast<uint32_t>(warp_index() % 2 * (kTile / 2) + lane() % 4 * kAdjacent);
    if (column0 >= a.columns) return;
    SINTER_UNROLL
    for (int i = 0; i < kRowFragments; ++i) SINTER_UNROLL
    for (int half = 0; half < 2; ++half) {
      const uint32_t row =
          first_row + static_cast<uint32_t>(warp_index() / 2 * (kTile / 2) + 16 * i + 8 * half + lane() / 4);
      if (row >= a.rows) continue;
      T* to = reinterpret_cast<T*>(a.y) + int64_t{row} * a.columns + column0;
      T all[kAdjacent];
      SINTER_UNROLL
      for (int n = 0; n < kAdjacent; ++n)
        if (column0 + static_cast<uint32_t>(n) < a.columns)
          narrow(low_bit_result(a, column0 + static_cast<uint32_t>(n), sums[i][n / 2][2 * half + n % 2]),
                 &all[n]);
        else
          all[n].bits = 0;
      if (a.columns % kAdjacent == 0 && is_aligned(a.y, 16)) {
        Words<16> words;
        SINTER_UNROLL
        for (int n = 0; n < 4; ++n)
          words.w[n] = all[2 * n].bits | static_cast<uint32_t>(all[2 * n + 1].bits) << 16;
        *reinterpret_cast<Words<16>*>(to) = words;
      } else {
        SINTER_UNROLL
        for (int n = 0; n < kAdjacent; ++n)
          if (column0 + static_cast<uint32_t>(n) < a.columns) to[n] = all[n];
      }
    }
  }
};

template <class T>
SINTER_DEVICE void many_rows(const LowBitArguments& a) {
  constexpr int kElements = 2 * kTile * kDepth;
  const auto stage = [](uint32_t step) {
    return shared_memory<uint16_t>(static_cast<int>(step % 2) * kLowBitHalfStage, kElements);
  };
  const auto scales = [](uint32_t step) {
    return shared_memory<float>(static_cast<int>(step % 2) * kLowBitHalfStage + kElements * 2, kTile);
  };
  uint32_t column_tile;
  const uint32_t row_tile = a.column_tiles.divide(block_x(), &column_tile);
  const Tile<T> tile{a, row_tile * kTile, column_tile * kTile,
                     LowBitReader(a.format.bits, a.format.is_signed())};
  float sums[kRowFragments][kColumnFragments][4] = {};
  Words<16> xs[2];
  Weights ws;
  tile.load_x(0, xs);
  tile.load_w(0, &ws);
  tile.store(stage(0), scales(0), xs, ws);
  barrier();
  const uint32_t steps = (a.depth + kDepth - 1) / kDepth;
  for (uint32_t step = 0; step < steps; ++step) {
    const bool more = step + 1 < steps;
    if (more) {
      tile.load_x((step + 1) * kDepth, xs);
      tile.load_w((step + 1) * kDepth, &ws);
    }
    tile.add(stage(step), scales(step), step * kDepth, sums);
    if (more) tile.store(stage(step + 1), scales(step + 1), xs, ws);
    barrier();
  }
  tile.give(sums);
}

}  // namespace

SINTER_KERNEL(low_bit_float16_tile, LowBitArguments) { many_rows<Float16>(a); }
SINTER_KERNEL(low_bit_bfloat16_tile, LowBitArguments) { many_rows<BFloat16>(a); }

}  // namespace sinter::cuda
