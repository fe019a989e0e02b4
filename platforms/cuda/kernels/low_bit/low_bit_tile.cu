// LowBitFullyConnected of many rows.
//
// A block computes a tile of 64 rows and columns in float, 32 elements of the depth at a time, which it
// widens on their way to shared memory, while the next ones are on their way to registers. A thread has 8
// rows and 4 columns.
#include "platforms/cuda/kernels/low_bit/low_bit_numbers.h"

namespace sinter::cuda {
namespace {

constexpr int kThreads = 128, kTile = kLowBitTile, kDepth = kLowBitDepth, kStride = kLowBitStride;
constexpr int kHalf = kDepth / 2;  // elements that a thread brings of each operand
constexpr int kRows = 8, kColumns = 4;
static_assert(kTile * 2 == kThreads && kTile / kRows * (kTile / kColumns) == kThreads);

struct Weights {
  Words<16> w = {};    // 16 numbers: 8 bytes of 4 bits each, or all
  uint32_t count = 0;  // of them that the row has
  LowBitScale by;
};

struct Tile {
  const LowBitArguments& a;
  uint32_t first_row, first_column;
  LowBitReader reader;

  SINTER_DEVICE int line() const { return thread_index() % kTile; }
  SINTER_DEVICE int half() const { return thread_index() / kTile * kHalf; }

  SINTER_DEVICE void load_x(uint32_t k0, float (&to)[kHalf]) const {
    const uint32_t row = first_row + static_cast<uint32_t>(line()), k = k0 + static_cast<uint32_t>(half());
    const int64_t at = int64_t{row} * a.depth + k;
    SINTER_UNROLL
    for (int i = 0; i < kHalf; ++i)
      to[i] = row < a.rows && k + static_cast<uint32_t>(i) < a.depth ? load_float(a.x, a.kind, at + i) : 0.0f;
    if (a.row_scales == nullptr || row >= a.rows || k >= a.depth) return;
    const float unit = a.row_scales[int64_t{row} * a.blocks + a.block_size.divide(k)];
    SINTER_UNROLL
    for (int i = 0; i < kHalf; ++i) to[i] *= unit;
  }
  SINTER_DEVICE void load_w(uint32_t k0, Weights* to) const {
    const uint32_t column = first_column + static_cast<uint32_t>(line()),
                   k = k0 + static_cast<uint32_t>(half());
    *to = {};
    if (column >= a.columns || k >= a.depth) return;
    const std::byte* from = a.w + int64_t{column} * a.pitch;
    if (low_bit_in_planes(a.format.bits)) {
      to->w = sixteen_of_planes(a.format.bits, from, k);
    } else if (a.format.bits == 4) {
      const auto v = *reinterpret_cast<const Words<8>*>(from + k / 2);
      to->w.w[0] = v.w[0], to->w.w[1] = v.w[1];
    } else {
      to->w = *reinterpret_cast<const Words<16>*>(from + k);
    }
    to->by = low_bit_scale(a, column, k);
    to->count = a.depth - k;
  }
  SINTER_DEVICE void store(const Shared<float>& x, const Shared<float>& w, const float (&xs)[kHalf],
                           const Weights& ws) const {
    SINTER_UNROLL
    for (int i = 0; i < kHalf; ++i) x[(half() + i) * kStride + line()] = xs[i];
    if (a.format.has_table())
      look_up(w, ws);
    else if (a.format.bits == 4)
      widen<4>(w, ws);
    else
      widen<8>(w, ws);
  }
  // The words behind the row's end may be NaN, which its x, 0, does not cancel.
  SINTER_DEVICE void look_up(const Shared<float>& to, const Weights& ws) const {
    SINTER_UNROLL
    for (int i = 0; i < kHalf; ++i)
      to[(half() + i) * kStride + line()] = static_cast<uint32_t>(i) < ws.count
                                                ? a.table[ws.w.w[i / 8] >> (i % 8 * 4) & 15] * ws.by.scale
                                                : 0.0f;
  }
  template <int kBits>
  SINTER_DEVICE void widen(const Shared<float>& to, const Weights& ws) const {
    constexpr int kOfWord = 32 / kBits;
    SINTER_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      const float v =
          LowBitReader::raised<kBits>(ws.w.w[i / kOfWord] ^ reader.flip, i % kOfWord) - reader.base;
      to[(half() + i) * kStride + line()] = (v - ws.by.zero) * ws.by.scale;
    }
  }
};

}  // namespace

SINTER_KERNEL(low_bit_tile, LowBitArguments) {
  const Shared<float> x = shared_memory<float>(0, kDepth * kStride);
  const Shared<float> w = shared_memory<float>(kDepth * kStride * 4, kDepth * kStride);
  uint32_t column_tile;
  const uint32_t row_tile = a.column_tiles.divide(block_x(), &column_tile);
  const Tile tile{a, row_tile * kTile, column_tile * kTile,
                  LowBitReader(a.format.bits, a.format.is_signed())};
  const int row0 = thread_index() / (kTile / kColumns) * kRows,
            column0 = thread_index() % (kTile / kColumns) * kColumns;
  float sums[kRows][kColumns] = {};
  float xs[kHalf];
  Weights ws;
  tile.load_x(0, xs);
  tile.load_w(0, &ws);
  for (uint32_t k = 0; k < a.depth; k += kDepth) {
    tile.store(x, w, xs, ws);
    barrier();
    tile.load_x(k + kDepth, xs);
    tile.load_w(k + kDepth, &ws);
    for (int i = 0; i < kDepth; ++i) {
      const auto above = x.load<Words<16>>(i * kStride + row0),
                 below = x.load<Words<16>>(i * kStride + row0 + 4);
      const auto across = w.load<Words<16>>(i * kStride + column0);
      SINTER_UNROLL
      for (int r = 0; r < kRows; ++r) SINTER_UNROLL
      for (int c = 0; c < kColumns; ++c)
        sums[r][c] =
            m_fma(float_of(r < 4 ? above.w[r % 4] : below.w[r % 4]), float_of(across.w[c]), sums[r][c]);
    }
    barrier();
  }
  SINTER_UNROLL
  for (int r = 0; r < kRows; ++r) SINTER_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    const uint32_t row = tile.first_row + static_cast<uint32_t>(row0 + r),
                   column = tile.first_column + static_cast<uint32_t>(column0 + c);
    if (row < a.rows && column < a.columns) store_low_bit(a, row, column, sums[r][c]);
  }
}

}  // namespace sinter::cuda
